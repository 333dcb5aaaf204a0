"""The command ``admission-gateway``, in a process that reports what it holds: tasks, file descriptors and memory."""

import asyncio
import contextlib
import gc
import json
import os
import socket
import sys
import threading
import traceback
from collections import Counter
from pathlib import Path

import uvloop

from gateway.cli.main import main as command_line
from tests.integration.process import WAIT_SECONDS

_SOCKET = "OBSERVED_SOCKET"


class Observer:
    """``options`` are those with which ``Serving`` starts the process; ``held`` asks it."""

    def __init__(self, folder, name):
        self._socket = folder / f"{name}.sock"
        command = folder / name
        command.write_text(f"#!{sys.executable}\nfrom tests.links.observed import main\nmain()\n")
        command.chmod(0o755)
        root = str(Path(__file__).parents[2])
        self.options = {"command": command, "env": {"PYTHONPATH": root, _SOCKET: str(self._socket)}}

    def held(self):
        """What the process holds: so many of each kind of task and descriptor, ``objects``, bytes of ``memory``.

        Raises AssertionError with its traceback if it could not tell.
        """
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(WAIT_SECONDS)
            client.connect(str(self._socket))
            found = json.loads(client.makefile("rb").read())
        assert isinstance(found, dict), found
        return Counter(found)


def main():
    """Run the command."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ.pop(_SOCKET))
    listener.listen()
    threading.Thread(target=_report, args=(listener,), daemon=True).start()
    command_line()


def _report(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                answer = _held(connection.fileno())
            except Exception:  # noqa: BLE001 - the next one that asks needs this thread
                answer = traceback.format_exc()
            connection.sendall(json.dumps(answer).encode())


def _held(own):
    gc.collect()
    objects = gc.get_objects()
    # Not isinstance: it asks a weak proxy for the class of an object that may be gone.
    loops = [each for each in objects if issubclass(type(each), uvloop.Loop)]
    held = Counter(f"task {task.get_coro().__qualname__}" for loop in loops for task in asyncio.all_tasks(loop))
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one with which the folder is read
            held["descriptor " + str(entry.readlink()).partition(":")[0]] += int(entry.name) != own
    memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return held | {"objects": len(objects), "memory": memory}
