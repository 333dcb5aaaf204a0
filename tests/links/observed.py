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

_loops = set()

_MODULES = ("gateway.", "grpc.", "redis.", "aiohttp.")
"""Those of the types whose objects are counted: what a call or a connection leaves behind has some of them."""


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
        """What the process holds: so many of each kind of task, descriptor and object; ``objects``, and ``memory``.

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
    freeze = gc.freeze

    def freeze_after_looking():
        _find_loops()
        freeze()

    gc.freeze = freeze_after_looking
    command_line()


def _find_loops():
    """Once gc.freeze was called, those that were there before cannot be found."""
    # Not isinstance: it asks a weak proxy for the class of an object that may be gone.
    _loops.update(each for each in gc.get_objects() if issubclass(type(each), uvloop.Loop))


def _report(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                answer = _held(connection.fileno())
            except Exception:  # noqa: BLE001 - the next one that asks needs this thread
                answer = traceback.format_exc()
            connection.sendall(json.dumps(answer).encode())


def _type_name(each):
    found = type(each)
    return f"{found.__module__}.{found.__qualname__}"


def _held(own):
    gc.collect()
    objects = gc.get_objects()
    _find_loops()
    held = Counter(f"task {task.get_coro().__qualname__}" for loop in _loops for task in asyncio.all_tasks(loop))
    held += Counter(f"object {name}" for name in map(_type_name, objects) if name.startswith(_MODULES))
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one with which the folder is read
            held["descriptor " + str(entry.readlink()).partition(":")[0]] += int(entry.name) != own
    memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return held | {"objects": len(objects), "memory": memory}
