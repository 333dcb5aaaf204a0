"""One program, run once: started in a session of its own, heard, bounded in time and output, and nothing of it left
behind.

* What it starts is in its process group, as long as it does not leave it. At its end, at its time limit, and when
  nobody waits for it any more, the whole group goes: SIGTERM, a short grace, SIGKILL. (After the program itself has
  ended there is no grace: what it left running has nobody to work for.)
* What has left the group is found by a mark in its environment, and killed as well (``strays``).
* Both outputs are read all the time, so that nobody stops in the middle of a write; of each the beginning is kept. Who
  writes more than a bound is ended, since whoever reads has other things to do.
* It is given what ``environment`` says, and of the gateway's own environment nothing at all.

The process is waited for by a descriptor of its own, not by the loop's watcher: that one has reaped the process before
it tells, and from then on the number of the group could be somebody else's.
"""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from gateway.enums import StrEnum
from gateway.hooks.execution.orphans import MARK, Strays, new_mark

GRACE_SECONDS: Final = 2.0
"""Between SIGTERM and SIGKILL: a script's trap removes a file and ends; whoever needs longer is not well."""

KEPT_BYTES: Final = 65_536
"""Of each output, unless somebody asks for more: enough for an error that is shown."""

_CHUNK_BYTES: Final = 65_536
"""Read at once: what a pipe holds, by Linux' default."""

_LAST_CHUNKS: Final = 16
"""Read of a pipe after the end: 1 MiB, the most that an ordinary user can make a pipe hold (fs.pipe-max-size)."""

_LOOK_SECONDS: Final = 0.02
"""How often an ended process is looked for where there are no descriptors of processes (anything but Linux)."""


class Stream(StrEnum):
    """One of a program's two outputs."""

    STDOUT = "stdout"
    STDERR = "stderr"


class Fate(StrEnum):
    """How a program came to its end."""

    ENDED = "ended"
    """By itself, or by somebody else's signal."""

    LATE = "late"
    """Its time was over."""

    FLOODED = "flooded"
    """It wrote too much to its outputs."""


class NotStartedError(Exception):
    """A program that could not be started. ``str(error)`` says which, why, and what to do."""


class Ended(Struct, frozen=True, kw_only=True):
    """A program that has ended. ``code`` is its exit status, less than 0 the signal that ended it; ``stdout`` and
    ``stderr`` are the beginnings of its outputs, ``left_out`` how many more bytes of both together were read.
    """

    fate: Fate
    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    left_out: int = 0


Heard = Callable[[Stream, bytes], object]
"""Takes what a program writes, as it comes."""


async def run(  # noqa: PLR0913 - all but the first by name
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: str | Path,
    seconds: float,
    output_bytes: int,
    kept_bytes: int = KEPT_BYTES,
    heard: Heard | None = None,
    started: Callable[[], object] = lambda: None,
) -> Ended:
    """Run a program to its end. Cancelling this ends the program, and returns when nothing of it is left.

    Args:
        argv: the program's path and its arguments.
        environment: all variables that it gets (see ``environment.clean_environment``).
        directory: where it starts.
        seconds: how long it may take; then its group is ended.
        output_bytes: how much it may write to both outputs together; then its group is ended.
        kept_bytes: how much of each output is kept.
        heard: takes the outputs as they come, kept or not; must not raise, and take next to no time.
        started: called when it runs.

    Raises:
        NotStartedError: it cannot be started.
    """
    life = _Life(argv, environment, str(directory), output_bytes=output_bytes, kept_bytes=kept_bytes, heard=heard)
    life.start()
    started()
    living = asyncio.create_task(life.live(seconds))
    try:
        return await asyncio.shield(living)
    except asyncio.CancelledError:
        life.end(Fate.ENDED)
        while not living.done():
            # Whoever cancels once more is in a hurry; the rest is then done behind its back.
            try:
                await asyncio.wait((living,))
            except asyncio.CancelledError:
                life.kill()
                break
        raise


class _Life:
    """One run, from start to end."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        *,
        output_bytes: int,
        kept_bytes: int,
        heard: Heard | None,
    ) -> None:
        self._argv = list(argv)
        self._environment = environment
        self._directory = directory
        self._room = output_bytes
        self._kept_bytes = kept_bytes
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._sources: dict[Stream, IO[bytes]] = {}
        self._kept = {stream: bytearray() for stream in Stream}
        self._left_out = 0
        self._fate = Fate.ENDED
        self._is_told = False
        self._grace: asyncio.TimerHandle | None = None
        self._mark = new_mark()

    def start(self) -> None:
        """Start the program.

        Raises:
            NotStartedError: it cannot be started.
        """
        Strays.adopt()
        try:
            process = subprocess.Popen(  # noqa: S603 - the operator's own program
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._directory,
                env={**self._environment, MARK: self._mark},
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise NotStartedError(_why_not(self._argv[0], self._directory, error)) from None
        assert process.stdout is not None  # noqa: S101 - asked for above
        assert process.stderr is not None  # noqa: S101 - asked for above
        self._process = process
        self._sources = {Stream.STDOUT: process.stdout, Stream.STDERR: process.stderr}
        for stream, source in self._sources.items():
            os.set_blocking(source.fileno(), False)
            self._loop.add_reader(source.fileno(), self._read, stream)

    async def live(self, seconds: float) -> Ended:
        """Wait for its end, at most so long; then see that nothing is left."""
        process = self._process
        assert process is not None  # noqa: S101 - start comes first
        limit = self._loop.call_later(seconds, self.end, Fate.LATE)
        try:
            await _ended(process)
        finally:
            limit.cancel()
            if self._grace is not None:
                self._grace.cancel()
            # Not reaped yet, so the number is its own still. (Where ``_has_ended`` must reap it, it has done so just
            # now, and a group's number is nobody else's as long as somebody is in it.)
            self._signal(signal.SIGKILL)
            code = process.wait()
            for stream in tuple(self._sources):
                self._read_rest(stream)
        await Strays.clear(session=process.pid, mark=self._mark)
        return Ended(
            fate=self._fate,
            code=code,
            stdout=bytes(self._kept[Stream.STDOUT]),
            stderr=bytes(self._kept[Stream.STDERR]),
            left_out=self._left_out,
        )

    def end(self, fate: Fate) -> None:
        """End the group: SIGTERM now, SIGKILL after the grace."""
        if self._is_told or self._process is None or self._process.returncode is not None:
            return
        self._is_told = True
        self._fate = fate
        self._signal(signal.SIGTERM)
        self._grace = self._loop.call_later(GRACE_SECONDS, self.kill)

    def kill(self) -> None:
        """SIGKILL to the group."""
        if self._process is not None and self._process.returncode is None:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None  # noqa: S101 - the callers have looked
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    # ----------------------------------------------------------------------------------------------- outputs

    def _read(self, stream: Stream) -> bool:
        """Read what is there, a little at a time; whether there may be more."""
        source = self._sources.get(stream)
        if source is None:
            return False
        try:
            chunk = os.read(source.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._close(stream)
            return False
        self._take(stream, chunk)
        return True

    def _take(self, stream: Stream, chunk: bytes) -> None:
        if self._room < len(chunk):
            self.end(Fate.FLOODED)
            self._stop_reading()
        allowed = chunk[: max(self._room, 0)]
        self._room -= len(allowed)
        kept = self._kept[stream]
        fits = allowed[: self._kept_bytes - len(kept)]
        kept += fits
        self._left_out += len(chunk) - len(fits)
        if allowed and self._heard is not None:
            self._heard(stream, allowed)

    def _stop_reading(self) -> None:
        """Until its end: whoever floods is to wait, not to be served."""
        for source in self._sources.values():
            self._loop.remove_reader(source.fileno())

    def _read_rest(self, stream: Stream) -> None:
        for _ in range(_LAST_CHUNKS):
            if not self._read(stream):
                break
        self._close(stream)

    def _close(self, stream: Stream) -> None:
        source = self._sources.pop(stream, None)
        if source is not None:
            self._loop.remove_reader(source.fileno())
            source.close()


async def _ended(process: "subprocess.Popen[bytes]") -> None:
    """Return when it has ended, without reaping it."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # Not Linux, or a sandbox without it.
        while not _has_ended(process):  # noqa: ASYNC110 - nobody would set an event
            await asyncio.sleep(_LOOK_SECONDS)
        return
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _resolve, ended)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether it has ended; it is reaped only where the platform cannot look without (macOS, before Python 3.13)."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _resolve(ended: "asyncio.Future[None]") -> None:
    if not ended.done():
        ended.set_result(None)


def _why_not(program: str, directory: str, error: Exception) -> str:
    """Why a program was not started, and what to do."""
    path = Path(directory, program)
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOENT and not Path(directory).is_dir():
        return f"{program} cannot be started: its directory {directory} is not there"
    if number == errno.ENOENT and path.exists():
        return f"{program} cannot be started: {_no_interpreter(program, _first_line(path))}"
    if number == errno.ENOENT:
        return f"{program} cannot be started: there is no such file"
    if number == errno.EACCES:
        return f"{program} cannot be started: it may not be executed; chmod +x {program}, and see its file system"
    if number == errno.ENOEXEC:
        return (
            f"{program} cannot be started: it is no program of this machine (exec format error); a script begins with "
            "a line such as #!/bin/bash"
        )
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"{program} cannot be started: {reason}"


def _no_interpreter(program: str, line: str) -> str:
    if line.endswith("\r") and len(line.split()) == 1:
        return (
            f"its first line ({line!r}) ends in CR, which counts as a part of the interpreter's name; end lines with "
            f"LF alone, as sed -i 's/\\r$//' {program} does"
        )
    return f"the interpreter that its first line names ({line.strip()!r}) is not there; install it, or name one that is"


def _first_line(path: Path) -> str:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.readline(_SHOWN).decode(errors="replace").rstrip("\n")
    return ""


_SHOWN: Final = 128
"""Characters of a first line that are repeated: Linux reads 256 of it."""
