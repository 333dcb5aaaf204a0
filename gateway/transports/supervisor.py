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
from collections.abc import Iterator
from typing import BinaryIO, Final

import structlog

from gateway.policies.model import Worker
from gateway.transports import OWN_VARIABLES
from gateway.transports.limits import TransportLimits
from gateway.transports.output import WorkerOutput
from gateway.transports.programs import search_path

_LOG: Final = structlog.get_logger(__name__)

RESTART_SECONDS: Final = (0.1, 10.0)
"""First and longest pause before a worker is started again; doubled each time."""

HEALTHY_SECONDS: Final = 30.0
"""A worker that lived this long was well: the next restart is quick again."""

LAST_WORDS_SECONDS: Final = 1.0
"""How long a dead worker's output is waited for: all of it is in the pipe, unless somebody else still writes to it."""


class Supervisor:
    """Keeps one worker's process running.

    Args:
        worker: with a ``command``.
        target: where it must listen.
        limits: how long it may take to stop.
    """

    def __init__(self, worker: Worker, target: str, limits: TransportLimits) -> None:
        if worker.grpc is None:
            raise ValueError(f"worker {worker.name!r} is not one that is started")
        self._worker = worker
        self._grpc = worker.grpc
        self._target = target
        self._limits = limits
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

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
        self._stopping = True
        task, process = self._task, self._process
        if task is None:
            return
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await asyncio.wait((task,), timeout=self._limits.worker_stop_seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _keep_running(self) -> None:
        pause = RESTART_SECONDS[0]
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._run()
            except (OSError, ValueError) as error:
                _LOG.error(
                    "a worker cannot be started; see the command in its Worker document",
                    worker=self._worker.name,
                    place=str(self._worker.place),
                    command=self._grpc.command,
                    error=str(error),
                )
            if self._stopping:
                return
            pause = RESTART_SECONDS[0] if loop.time() - started > HEALTHY_SECONDS else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, RESTART_SECONDS[1])

    async def _run(self) -> None:
        """One life of the worker, from its start until nothing of it is left."""
        # Pipes of our own: a process with asyncio's has ended only when they are closed, and a child of the worker may
        # hold them open for ever.
        with _pipe() as (life, _held), _pipe() as (heard, output):
            process = await self._born(life, output)
            self._process = process
            _LOG.info("a worker is started", worker=self._worker.name, pid=process.pid, listens=self._target)
            for theirs in (life, output):
                theirs.close()
            os.set_blocking(heard.fileno(), False)
            log = asyncio.create_task(WorkerOutput(self._worker.name, heard).log())
            try:
                await process.wait()
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                try:
                    code = await process.wait()
                    # Who has left the group may still hold the output: then it is not waited for.
                    await asyncio.wait((log,), timeout=LAST_WORDS_SECONDS)
                finally:
                    # Also when stopped while waiting here: nobody may go on reading what is about to be closed.
                    log.cancel()
                    await asyncio.gather(log, return_exceptions=True)
            self._log_end(process.pid, code)

    async def _born(self, life: BinaryIO, output: BinaryIO) -> asyncio.subprocess.Process:
        """The process, just started. Who is stopped meanwhile leaves none: a start that is broken off is nobody's."""
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *self._grpc.command,
                stdin=life,
                stdout=output,
                stderr=output,
                cwd=self._grpc.directory or None,
                env=self._environment(),
                start_new_session=True,
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError, ValueError):
                process = await starting
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            raise

    def _log_end(self, pid: int, code: int) -> None:
        if self._stopping:
            _LOG.info("a worker has ended", worker=self._worker.name, pid=pid, code=code)
        else:
            _LOG.warning("a worker has ended and is started again", worker=self._worker.name, pid=pid, code=code)

    def _environment(self) -> dict[str, str]:
        given = {name: text for name, text in os.environ.items() if name not in OWN_VARIABLES}
        return {
            **given,
            "PATH": search_path(),
            "ADMISSION_WORKER_LISTEN": self._target,
            "ADMISSION_WORKER_SUPERVISED": "1",
            "PYTHONUNBUFFERED": "1",
        }


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The reading and the writing end of a pipe, closed at the end. A child has of it only what it is given."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", 0) as source, os.fdopen(writing, "wb", 0) as sink:
        yield source, sink
