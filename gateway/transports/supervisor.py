"""Starts a worker's process, and restarts it whenever it ends.

``ADMISSION_WORKER_LISTEN`` gives the process the gRPC target to listen at. ``ADMISSION_WORKER_SUPERVISED=1`` means that
its standard input is a pipe that the gateway holds open: at end of file the gateway has died, and the worker should
exit. The process has the environment that hooks have (``programs``), without secrets. It leads its own process group,
so that its children are stopped with it. ``python`` is searched beside the gateway's own interpreter first, so that a
worker installed with the gateway needs no path.
"""

import asyncio
import contextlib
import gc
import os
import shlex
import signal
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final

import structlog

from gateway.engine.plan import Unavailable, UnavailableReason
from gateway.policies.workers.targets import Worker
from gateway.transports.limits import TransportLimits
from gateway.transports.messages import one_line
from gateway.transports.output import WorkerOutput
from gateway.transports.programs import clean_environment, search_path

_LOG: Final = structlog.get_logger(__name__)

# uvloop starts a process by fork, and the child runs Python until it executes the program. A garbage collection in the
# child may finalize the parent's objects: gRPC's completion queue joins its thread, which the child does not have.
os.register_at_fork(before=gc.disable, after_in_parent=gc.enable)

RESTART_SECONDS: Final = (0.1, 10.0)
"""The pause before the second restart, and the longest one; doubled each time. The first restart is immediate, because
reviews wait for it."""

HEALTHY_SECONDS: Final = 30.0
"""After this uptime, the next restart counts as the first again."""

LAST_OUTPUT_SECONDS: Final = 1.0
"""How long the rest of an ended worker's output is read, while it is started again: it is in the pipe already, unless
another process writes too."""


REPORTED: Final = 1_000
"""Characters of a command, and of its last output, in the message for policies that cannot be called."""


class Supervisor:
    """Keeps one worker's process running.

    Args:
        worker: with a ``command``.
        target: where it must listen.
        limits: how long it may take to stop.
    """

    def __init__(self, worker: Worker, target: str, limits: TransportLimits) -> None:
        if worker.grpc is None:
            raise ValueError(f"worker {worker.name!r} has no command")
        self._worker = worker
        self._grpc = worker.grpc
        self._target = target
        self._limits = limits
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._started = 0.0
        self._problem: Unavailable | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._listeners: list[Callable[[], object]] = []

    @property
    def problem(self) -> Unavailable | None:
        """Why its policies cannot be called, as their availability: the process does not start, or ended, and has not
        run for ``HEALTHY_SECONDS`` since. None: the process runs.
        """
        is_stable = self.pid is not None and asyncio.get_running_loop().time() - self._started > HEALTHY_SECONDS
        return None if is_stable else self._problem

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this whenever ``problem`` has changed."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], object]) -> None:
        """Stop calling this."""
        self._listeners.remove(listener)

    @property
    def pid(self) -> int | None:
        """The process id of the worker, if it runs."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    def start(self) -> None:
        """Start the worker, in the background, and keep it running."""
        self._task = asyncio.create_task(self._keep_running())

    async def stop(self) -> None:
        """Send SIGTERM to the worker, SIGKILL to its process group if it takes too long; wait until it has ended."""
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
        await asyncio.gather(*self._endings, return_exceptions=True)

    async def _keep_running(self) -> None:
        pause = 0.0
        loop = asyncio.get_running_loop()
        while True:
            self._started = loop.time()
            try:
                await self._run()
            except (OSError, ValueError) as error:
                _LOG.error(
                    "a worker cannot be started; check the command in its Worker document",
                    worker=self._worker.name,
                    place=str(self._worker.place),
                    command=self._grpc.command,
                    error=str(error),
                )
                self._failed(f"cannot be started: {getattr(error, 'strerror', None) or error}", ())
            if self._stopping:
                return
            if loop.time() - self._started > HEALTHY_SECONDS:
                pause = 0.0
            await asyncio.sleep(pause)
            pause = min(max(2 * pause, RESTART_SECONDS[0]), RESTART_SECONDS[1])

    async def _run(self) -> None:
        """Run the worker once, from its start until its process group has ended."""
        # Pipes of our own: a process with asyncio's has ended only when they are closed, and a child of the worker may
        # hold them open for ever.
        with contextlib.ExitStack() as pipes:
            stdin_end, _held = pipes.enter_context(_pipe())
            received, output = pipes.enter_context(_pipe())
            process = await self._spawn(stdin_end, output)
            self._process = process
            _LOG.info("a worker is started", worker=self._worker.name, pid=process.pid, listens=self._target)
            for theirs in (stdin_end, output):
                theirs.close()
            os.set_blocking(received.fileno(), False)
            reported = WorkerOutput(self._worker.name, received)
            log = asyncio.create_task(reported.log())
            try:
                await process.wait()
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                # In the background: the worker is started again meanwhile.
                ending = asyncio.create_task(self._finish(process, reported, log, pipes.pop_all()))
                self._endings.add(ending)
                ending.add_done_callback(self._endings.discard)
                await process.wait()

    async def _finish(
        self,
        process: asyncio.subprocess.Process,
        reported: WorkerOutput,
        log: asyncio.Task[None],
        pipes: contextlib.ExitStack,
    ) -> None:
        """Read the last output of an ended process, close its pipes, and report its end."""
        with pipes:
            try:
                code = await process.wait()
                # A process that has left the group may still hold the output: do not wait for that.
                await asyncio.wait((log,), timeout=LAST_OUTPUT_SECONDS)
            finally:
                # The pipe must not be read after it is closed.
                log.cancel()
                await asyncio.gather(log, return_exceptions=True)
        self._log_end(process.pid, code)
        if not self._stopping:
            self._failed(f"ended {_exit_text(code)}", reported.last_lines)

    async def _spawn(self, stdin_end: BinaryIO, output: BinaryIO) -> asyncio.subprocess.Process:
        """Start the process. If cancelled meanwhile, kill it, because no other task would."""
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *self._grpc.command,
                stdin=stdin_end,
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

    def _failed(self, what: str, lines: Iterable[str]) -> None:
        """Report a failed process: to users that it does not run, to operators also its command and last output."""
        command = one_line(shlex.join(self._grpc.command), REPORTED)
        wrote = one_line(" | ".join(lines), REPORTED) or "nothing"
        self._problem = Unavailable(
            why=UnavailableReason.UNDESCRIBED,
            message=f"worker {self._worker.name!r} does not run",
            hint=f"its command {what}: {command}; it wrote last: {wrote}",
        )
        for listener in tuple(self._listeners):
            listener()

    def _environment(self) -> dict[str, str]:
        return clean_environment(
            {
                "PATH": search_path(),
                "ADMISSION_WORKER_LISTEN": self._target,
                "ADMISSION_WORKER_SUPERVISED": "1",
                "PYTHONUNBUFFERED": "1",
            }
        )


def _exit_text(code: int) -> str:
    """How a process has ended, from asyncio's return code."""
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The reading and the writing end of a pipe, closed at the end. A child inherits only the ends that it is given."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", 0) as source, os.fdopen(writing, "wb", 0) as sink:
        yield source, sink
