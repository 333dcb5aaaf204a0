"""What stands behind a queue, as an operator runs it: a worker, and bridges that feed it. Processes of their own."""

import base64
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.integration.process import COMMAND, WAIT_SECONDS, Lines
from tests.workers.commands import SAMPLES, command


def key_file(folder):
    """A file with one key."""
    path = folder / "queue.key"
    path.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    return path


class Process:
    """One process; its standard error is kept."""

    def __init__(self, *argv, env=None):
        self._process = subprocess.Popen(
            [str(word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **(env or {})},
        )
        self.err = Lines(self._process.stderr)

    @property
    def is_running(self):
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def kill(self):
        """As a node does that loses its power."""
        self._process.kill()
        self._process.wait(WAIT_SECONDS)

    def terminate(self):
        """Call it to stop, as Kubernetes does; gives its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(WAIT_SECONDS)

    def stop(self):
        """Leave nothing behind."""
        if self.is_running:
            self.kill()
        self.err.all()


def sample_worker(language, address):
    """The sample policies in one language."""
    return Process(*command(SAMPLES, language), "--listen", address)


def ledger_worker(address, ledger):
    """The worker of tests/webhooks/ledger.py, which writes down what it judges."""
    return Process(sys.executable, "-m", "tests.webhooks.ledger", "--listen", address, env={"LEDGER": str(ledger)})


def bridge(stream, key, redis, target):
    """A bridge from a queue to a worker."""
    return Process(COMMAND, "bridge", "--queue", stream, "--key-file", key, "--redis", redis, "--worker", target)
