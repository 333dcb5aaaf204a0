"""``admission-gateway serve`` as an operator runs it: a process of its own, its output read as it comes."""

import base64
import io
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

WAIT_SECONDS = 90.0
"""Seconds after which a test gives up. Nothing that passes takes more than a fraction; shared machines do. It is more
than gateways are reported to wait for their workers."""

COMMAND = Path(sys.executable).parent / "admission-gateway"

_SERVING = re.compile(r"serving https://127\.0\.0\.1:(\d+)/mutate and /validate; http://127\.0\.0\.1:(\d+)/readyz")


class Lines:
    """The lines that a process writes to one of its outputs, kept as they come."""

    def __init__(self, stream):
        self._lines = []
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream):
        with stream:
            for line in stream:
                with self._changed:
                    self._lines.append(line.decode(errors="replace").rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __iter__(self):
        with self._changed:
            return iter(list(self._lines))

    def find(self, wanted):
        """The first line for which ``wanted`` is true, waiting for it; None if the output ends without one."""

        def found():
            return next((line for line in self._lines if wanted(line)), None)

        with self._changed:
            assert self._changed.wait_for(lambda: self._closed or found(), WAIT_SECONDS), "\n".join(self._lines)
            return found()

    def all(self):
        """All lines, once the output has ended."""
        self._thread.join(WAIT_SECONDS)
        return list(self)


class Serving:
    """One gateway process. ``arguments`` follow ``serve``; the ports are free ones.

    ``stderr`` is read here unless it is given; ``command`` is that of another version.
    """

    def __init__(self, *arguments, env=None, stderr=subprocess.PIPE, command=COMMAND):
        self.process = subprocess.Popen(
            [command, "serve", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={
                **os.environ,
                "ADMISSION_GATEWAY_LISTEN": "127.0.0.1:0",
                "ADMISSION_GATEWAY_ADMIN_LISTEN": "127.0.0.1:0",
                # No endpoint leads clients here.
                "ADMISSION_GATEWAY_SHUTDOWN_DELAY": "0",
            }
            | (env or {}),
        )
        self.out = Lines(self.process.stdout)
        self.err = Lines(self.process.stderr or io.BytesIO())
        self.port = self.admin_port = 0

    def ready(self):
        """Wait until it serves."""
        line = self.out.find(lambda line: line.startswith("serving "))
        assert line is not None, f"it ended before it served: {self.exit_code()}\n" + "\n".join(self.err)
        self.port, self.admin_port = map(int, _SERVING.fullmatch(line).groups())
        return self

    @property
    def trust(self):
        """A client's TLS that knows nothing but the caBundle that was printed."""
        bundle = self.out.find(lambda line: line.startswith("caBundle: ")).removeprefix("caBundle: ")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=base64.b64decode(bundle).decode())
        return context

    def admin(self, path):
        """The body of a page of the admin listener; HTTPError if it is not 200."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=WAIT_SECONDS) as response:
            return response.read().decode()

    def page(self, path):
        """Status and body of a page of the admin listener, whatever the status."""
        try:
            return 200, self.admin(path)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name, **labels):
        """One value of /metrics."""
        text = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
        series = f"admission_gateway_{name}{{{text}}} " if labels else f"admission_gateway_{name} "
        lines = self.admin("/metrics").splitlines()
        return next(float(line.removeprefix(series)) for line in lines if line.startswith(series))

    def logged(self, message, **fields):
        """The first log line with this message and these fields, waiting for it."""

        def wanted(line):
            entry = parsed(line)
            return entry is not None and entry["message"] == message and fields.items() <= entry.items()

        line = self.err.find(wanted)
        assert line is not None, f"no process logged {message!r} {fields}:\n" + "\n".join(self.err)
        return parsed(line)

    def log(self):
        """All log lines so far."""
        return [entry for entry in map(parsed, self.err) if entry is not None]

    def internal_errors(self):
        """Output that is not a log line, and log lines of internal errors. A worker's output is neither.

        Nor is a loop that stands still while it imports modules: other programs have its core.
        """
        lines = [line for line in self.err if not line.startswith(("warning: ", "error: "))]
        return [
            line
            for line, entry in zip(lines, map(parsed, lines), strict=True)
            if entry is None
            or "exception" in entry
            or (entry["level"] in {"error", "critical"} and "event loop stands still" not in entry["message"])
        ]

    def children(self):
        """The processes that it has started and that still run."""
        return children(self.process.pid)

    def terminate(self):
        """Call it to stop, as Kubernetes does."""
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self):
        """Its exit code, waiting for it."""
        return self.process.wait(WAIT_SECONDS)

    def stop(self):
        """End it, whatever state it is in, and its workers with it."""
        started = self.children()
        if self.process.poll() is None:
            self.terminate()
            self.terminate()
            try:
                self.exit_code()
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pid in started:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.out.all()
        self.err.all()


def parsed(line):
    """A JSON log line; None for a line that is none, such as what the command says before it logs."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def children(pid):
    """The child processes of a process; none if it is gone."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            continue
    return found


def runs(pid):
    """Whether a process is, and is no zombie: who reaps an orphan, and when, is up to the machine."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
