"""Exit codes, and the standard streams, which may be closed, full, or without a reader.

* The kernel gives a closed descriptor 0, 1 or 2 to the next file or socket that is opened: a report would be written to
  a connection, and libuv aborts the process when it closes one ("Assertion `fd > STDERR_FILENO' failed"). So closed
  descriptors are opened on the null device, for this process and for the workers that it starts.
* A standard error that cannot be written changes no exit code: it carries no part of the report.
* An output that cannot be written exits with 2. Click exits with 1 when a pipe's reader has left, and shows a traceback
  when a disk is full; here 1 means errors in the configuration, or a denial.
"""

import contextlib
import errno
import os
import sys
from typing import Any, Final, NoReturn

import click

WRONG_CONFIGURATION: Final = 1
COULD_NOT: Final = 2
"""Exit codes; 0 is success."""

_OUTPUT_ERRORS: Final = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


_notes: Final = {"printed": True}


def print_notes(*, wanted: bool) -> None:
    """Whether ``note`` prints. With several processes one prints what all find; ``fail`` always prints."""
    _notes["printed"] = wanted


def fail(message: str, code: int) -> NoReturn:
    """Print the error, and exit."""
    _print(f"error: {message}", "red", err=True)
    raise SystemExit(code)


def note(message: str, *, fg: str | None = None, err: bool = True) -> None:
    """Print a line to the standard error. If it cannot be written (the disk is full, the reader has left), the line is
    lost, and neither the command nor its exit code changes.

    Args:
        message: the line.
        fg: its colour on a terminal.
        err: False: to the standard output, for a command without a report.
    """
    if _notes["printed"]:
        _print(message, fg, err=err)


def _print(message: str, fg: str | None, *, err: bool) -> None:
    with contextlib.suppress(OSError):
        click.secho(message, fg=fg, err=err)


class CommandGroup(click.Group):
    """A group of commands whose standard streams may be in any state."""

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command; exit 2 if its output cannot be written, with an error unless its reader has left."""
        _open_closed()
        if os.environ.get("NO_COLOR"):
            # no-color.org: "when present and not an empty string (regardless of its value), prevents ... color".
            ctx.color = False
        try:
            return self._invoked(ctx)
        finally:
            _discard_unwritten()

    def _invoked(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            # An error of a file has its name, and is not one of the output.
            if error.errno not in _OUTPUT_ERRORS or error.filename is not None:
                raise
            if error.errno != errno.EPIPE:
                note(f"error: the output cannot be written: {error.strerror}", fg="red")
        _discard_output()
        sys.exit(COULD_NOT)


def _open_closed() -> None:
    for descriptor, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        try:
            os.fstat(descriptor)
        except OSError:
            # The kernel takes the lowest free number, which is this one: those below it are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            # Python found it closed and set it to None.
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


def _discard_unwritten() -> None:
    """Discard lines of ``note`` that could not be written; else Python would exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _discard_output()


def _discard_output() -> None:
    """Discard what is still buffered; else the interpreter would try to write it once more as it exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
