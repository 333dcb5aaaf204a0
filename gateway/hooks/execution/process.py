"""Runs one program once: in a session of its own, with limits of time and output. Nothing of it is left behind.

* A program and what it starts form a process group, as long as they do not leave it. The gateway signals the whole
  group: SIGTERM, a grace period, SIGKILL. It does so at the time limit, at the output limit, and when the caller is
  cancelled. After the program itself has exited, what is left of its group gets SIGKILL at once.
* Processes that have left the group are found by a variable in their environment, and killed (``orphans``).
* Both outputs are read all the time, so that the program never blocks on a write. The beginning of each is kept.
* The program gets the environment that the caller gives, and nothing of the gateway's own.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from gateway.hooks.execution.exit_wait import exited
from gateway.hooks.execution.orphans import RUN_VARIABLE, OrphanReaper, new_run_id
from gateway.hooks.execution.results import ExitCause, ProcessResult, Stream, start_error

GRACE_SECONDS: Final = 2.0
"""Between SIGTERM and SIGKILL: enough for a script's trap that removes a file and exits."""

KEPT_BYTES: Final = 65_536
"""Of each output, by default: enough for an error message."""

_CHUNK_BYTES: Final = 65_536
"""Read at once: what a pipe holds, by Linux' default."""

_LAST_CHUNKS: Final = 16
"""Read from a pipe after the exit: 1 MiB, the most that an unprivileged user can make a pipe hold
(fs.pipe-max-size)."""

OnOutput = Callable[[Stream, bytes], object]
"""Called with each piece of a program's output."""


async def run(  # noqa: PLR0913 - all but the first by name
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: str | Path,
    seconds: float,
    output_bytes: int,
    kept_bytes: int = KEPT_BYTES,
    on_output: OnOutput | None = None,
    on_start: Callable[[], object] = lambda: None,
) -> ProcessResult:
    """Run a program to its end. Cancelling this stops the program, and returns when nothing of it is left.

    Args:
        argv: the program's path and its arguments.
        environment: all variables that it gets (see ``programs.clean_environment``).
        directory: its working directory.
        seconds: the time limit, after which its group is stopped.
        output_bytes: how much it may write to both outputs together before its group is stopped.
        kept_bytes: how much of each output is kept.
        on_output: called with the outputs as they come, kept or not; must not raise, and return quickly.
        on_start: called when the program runs.

    Raises:
        NotStartedError: it cannot be started.
    """
    process = _Process(
        argv, environment, str(directory), output_bytes=output_bytes, kept_bytes=kept_bytes, on_output=on_output
    )
    process.start()
    on_start()
    waiting = asyncio.create_task(process.wait(seconds))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        process.stop(ExitCause.EXITED)
        while not waiting.done():
            # A second cancellation is not delayed: SIGKILL at once, and the task cleans up in the background.
            try:
                await asyncio.wait((waiting,))
            except asyncio.CancelledError:
                process.kill()
                break
        raise


class _Process:
    """One run of a program, from its start to its end."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        *,
        output_bytes: int,
        kept_bytes: int,
        on_output: OnOutput | None,
    ) -> None:
        self._argv = list(argv)
        self._environment = environment
        self._directory = directory
        self._allowed_bytes = output_bytes
        self._kept_bytes = kept_bytes
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipes: dict[Stream, IO[bytes]] = {}
        self._kept = {stream: bytearray() for stream in Stream}
        self._left_out = 0
        self._cause = ExitCause.EXITED
        self._is_stopping = False
        self._grace: asyncio.TimerHandle | None = None
        self._run_id = new_run_id()

    def start(self) -> None:
        """Start the program.

        Raises:
            NotStartedError: it cannot be started.
        """
        OrphanReaper.adopt_orphans()
        try:
            process = subprocess.Popen(  # noqa: S603 - the operator's own program
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._directory,
                env={**self._environment, RUN_VARIABLE: self._run_id},
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise start_error(self._argv[0], self._directory, error) from None
        assert process.stdout is not None  # noqa: S101 - requested above
        assert process.stderr is not None  # noqa: S101 - requested above
        self._process = process
        self._pipes = {Stream.STDOUT: process.stdout, Stream.STDERR: process.stderr}
        for stream, pipe in self._pipes.items():
            os.set_blocking(pipe.fileno(), False)
            self._loop.add_reader(pipe.fileno(), self._read, stream)

    async def wait(self, seconds: float) -> ProcessResult:
        """Wait until the program has ended, at most so long; then remove what is left of it."""
        process = self._process
        assert process is not None  # noqa: S101 - start comes first
        time_limit = self._loop.call_later(seconds, self.stop, ExitCause.TIMED_OUT)
        try:
            await exited(process)
        finally:
            time_limit.cancel()
            if self._grace is not None:
                self._grace.cancel()
            # The process is not reaped yet, so the number is still its own. (Where ``exited`` has to reap it, it
            # did so just now, and a group's number stays taken as long as the group has members.)
            self._signal(signal.SIGKILL)
            code = process.wait()
            for stream in tuple(self._pipes):
                self._read_rest(stream)
        await OrphanReaper.kill_run(session=process.pid, run_id=self._run_id)
        return ProcessResult(
            cause=self._cause,
            code=code,
            stdout=bytes(self._kept[Stream.STDOUT]),
            stderr=bytes(self._kept[Stream.STDERR]),
            left_out=self._left_out,
        )

    def stop(self, cause: ExitCause) -> None:
        """Stop the group: SIGTERM now, SIGKILL after the grace period."""
        if self._is_stopping or self._process is None or self._process.returncode is not None:
            return
        self._is_stopping = True
        self._cause = cause
        self._signal(signal.SIGTERM)
        self._grace = self._loop.call_later(GRACE_SECONDS, self.kill)

    def kill(self) -> None:
        """Send SIGKILL to the group."""
        if self._process is not None and self._process.returncode is None:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None  # noqa: S101 - the callers have checked
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    # ----------------------------------------------------------------------------------------------- outputs

    def _read(self, stream: Stream) -> bool:
        """Read one chunk; whether there may be more."""
        pipe = self._pipes.get(stream)
        if pipe is None:
            return False
        try:
            chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._close(stream)
            return False
        self._take(stream, chunk)
        return True

    def _take(self, stream: Stream, chunk: bytes) -> None:
        if self._allowed_bytes < len(chunk):
            self.stop(ExitCause.OUTPUT_LIMIT)
            self._pause_reading()
        allowed = chunk[: max(self._allowed_bytes, 0)]
        self._allowed_bytes -= len(allowed)
        kept = self._kept[stream]
        fits = allowed[: self._kept_bytes - len(kept)]
        kept += fits
        self._left_out += len(chunk) - len(fits)
        if allowed and self._on_output is not None:
            self._on_output(stream, allowed)

    def _pause_reading(self) -> None:
        """Read nothing more until the exit, so that endless output costs the event loop nothing."""
        for pipe in self._pipes.values():
            self._loop.remove_reader(pipe.fileno())

    def _read_rest(self, stream: Stream) -> None:
        for _ in range(_LAST_CHUNKS):
            if not self._read(stream):
                break
        self._close(stream)

    def _close(self, stream: Stream) -> None:
        pipe = self._pipes.pop(stream, None)
        if pipe is not None:
            self._loop.remove_reader(pipe.fileno())
            pipe.close()
