"""A worker that the gateway starts itself, and starts again whenever it ends.

The process is told where to listen by ``ADMISSION_WORKER_LISTEN`` (a gRPC target), and by
``ADMISSION_WORKER_SUPERVISED=1`` that its
standard input is a pipe held open by the gateway: at its end the gateway has died, however it died, and the worker
should go too. It leads a process group of its own, so that what it starts is stopped with it. ``python`` is found
beside the gateway's own interpreter first, so that a worker installed with the gateway runs without further ado.
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Final

import structlog

from gateway.policies import Worker
from gateway.transports.limits import TransportLimits

_LOG: Final = structlog.get_logger(__name__)

RESTART_SECONDS: Final = (0.1, 10.0)
"""First and longest pause before a worker is started again; doubled each time."""

HEALTHY_SECONDS: Final = 30.0
"""A worker that lived this long was well: the next restart is quick again."""

LINE_BYTES: Final = 65_536
"""The longest line of a worker's output that is logged as one."""


class Supervisor:
    """Keeps one worker's process running.

    Args:
        worker: with a ``command``.
        target: where it must listen.
        limits: how long it may take to stop.
    """

    def __init__(self, worker: Worker, target: str, limits: TransportLimits) -> None:
        self._worker = worker
        self._target = target
        self._limits = limits
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the worker, if it runs."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    def start(self) -> None:
        """Start the worker, in the background, and keep it running."""
        self._task = asyncio.create_task(self._keep_running())

    async def stop(self) -> None:
        """SIGTERM to the worker, SIGKILL to its whole group when it takes too long. Afterwards nothing of it is
        left.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self._limits.worker_stop_seconds)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()

    async def _keep_running(self) -> None:
        pause = RESTART_SECONDS[0]
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._run()
            except OSError as error:
                _LOG.error(
                    "a worker cannot be started; see the command in its Worker document",
                    worker=self._worker.name,
                    place=str(self._worker.place),
                    command=self._worker.grpc.command,
                    error=str(error),
                )
            pause = RESTART_SECONDS[0] if loop.time() - started > HEALTHY_SECONDS else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, RESTART_SECONDS[1])

    async def _run(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *self._worker.grpc.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self._worker.grpc.directory or None,
            env=self._environment(),
            start_new_session=True,
            limit=LINE_BYTES,
        )
        self._process = process
        _LOG.info("a worker is started", worker=self._worker.name, pid=process.pid, listens=self._target)
        assert process.stdout is not None  # noqa: S101 - it is a PIPE
        await self._log_output(process.stdout)
        code = await process.wait()
        _LOG.warning("a worker has ended and is started again", worker=self._worker.name, pid=process.pid, code=code)

    def _environment(self) -> dict[str, str]:
        beside = str(Path(sys.executable).parent)
        return {
            **os.environ,
            "PATH": f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "ADMISSION_WORKER_LISTEN": self._target,
            "ADMISSION_WORKER_SUPERVISED": "1",
            "PYTHONUNBUFFERED": "1",
        }

    async def _log_output(self, output: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await output.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                line = error.partial
            except asyncio.LimitOverrunError as error:
                line = await output.read(error.consumed)
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            if text:
                _LOG.info("worker output", worker=self._worker.name, line=text)
