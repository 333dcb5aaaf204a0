"""A worker made with the SDK as a process of its own."""

import os
import subprocess
import sys

from tests.integration.process import WAIT_SECONDS, Lines


class WorkerProcess:
    """``python ARGUMENTS``, or another ``program``, which listens at ``target``. It ends when we do."""

    def __init__(self, target, *arguments, program=(sys.executable,)):
        self.target = target
        self._process = subprocess.Popen(
            [*program, *arguments, "--listen", self.target],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | {"ADMISSION_WORKER_SUPERVISED": "1"},
        )
        self._err = Lines(self._process.stderr)

    def ready(self):
        """Wait until it listens."""
        assert self._err.find(lambda line: " listens on " in line) is not None, "\n".join(self._err)
        return self

    def find(self, condition):
        """The first line of its log that the condition is true for, waiting for it."""
        return self._err.find(condition)

    def terminate(self):
        """End it as Kubernetes does; gives its exit code."""
        self._process.terminate()
        return self._process.wait(WAIT_SECONDS)

    def stop(self):
        """End it at once."""
        self._process.kill()
        self._process.wait(WAIT_SECONDS)
        self._process.stdin.close()
        self._err.all()
