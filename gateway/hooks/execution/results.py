"""What comes of running a program: how it ended and what it wrote, or why it could not be started."""

import contextlib
import errno
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.enums import StrEnum


class Stream(StrEnum):
    """One of a program's two outputs."""

    STDOUT = "stdout"
    STDERR = "stderr"


class ExitCause(StrEnum):
    """Why a program ended."""

    EXITED = "exited"
    """It exited by itself, or by a signal that the gateway did not send."""

    TIMED_OUT = "timed out"
    """The gateway stopped it at its time limit."""

    OUTPUT_LIMIT = "stopped at its output limit"
    """The gateway stopped it because it wrote too much."""


class ProcessResult(Struct, frozen=True, kw_only=True):
    """A program that has ended. ``code`` is its exit status, or minus the number of the signal that ended it;
    ``stdout`` and ``stderr`` are the beginnings of its outputs, ``left_out`` how many more bytes of both together were
    read.
    """

    cause: ExitCause
    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    left_out: int = 0


class NotStartedError(Exception):
    """A program could not be started. ``str(error)`` says which, why, and what to do."""


def start_error(program: str, directory: str, error: Exception) -> NotStartedError:
    """The error for a program that the system did not start.

    Args:
        program: its path.
        directory: where it was to start.
        error: what was raised.
    """
    path = Path(directory, program)
    match error.errno if isinstance(error, OSError) else None:
        case errno.ENOENT if not Path(directory).is_dir():
            why = f"its directory {directory} does not exist"
        case errno.ENOENT if path.exists():
            why = _missing_interpreter(program, _first_line(path))
        case errno.ENOENT:
            why = "there is no such file"
        case errno.EACCES:
            why = f"it may not be executed; chmod +x {program}, and check that its file system is not mounted noexec"
        case errno.ENOEXEC:
            why = "exec format error; start a script with a line such as #!/bin/bash, or build it for this machine"
        case _:
            why = str((isinstance(error, OSError) and error.strerror) or error)
    return NotStartedError(f"{program} cannot be started: {why}")


def _missing_interpreter(program: str, line: str) -> str:
    if line.endswith("\r") and len(line.split()) == 1:
        return (
            f"its first line ({line!r}) ends in CR, which counts as part of the interpreter's name; end lines with "
            f"LF alone: sed -i 's/\\r$//' {program}"
        )
    return f"the interpreter in its first line ({line.strip()!r}) does not exist; install it, or name another one"


def _first_line(path: Path) -> str:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.readline(_SHOWN).decode(errors="replace").rstrip("\n")
    return ""


_SHOWN: Final = 128
"""Characters of a first line that are quoted. Linux reads 256."""
