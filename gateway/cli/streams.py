"""How a command ends, and its standard streams, which may be closed, full, or without a reader.

* A closed descriptor 0, 1 or 2 is given to the next file or socket that is opened: a report would be written into a
  connection, and libuv ends the process when it is to close one ("Assertion `fd > STDERR_FILENO' failed"). So closed
  ones lead nowhere instead, for this process and for the workers that it starts.
* A standard error that cannot be written prevents nothing: what is written there is beside the report.
* An output that cannot be written is no verdict. Click exits with 1 when a pipe's reader has left, and shows a
  traceback when a disk is full; here 1 means mistakes, or a denial. So both are "could not".
"""

import contextlib
import errno
import os
import sys
from typing import Any, Final, NoReturn

import click

WRONG_CONFIGURATION: Final = 1
COULD_NOT: Final = 2
"""Exit codes; 0 is done."""

_OUTPUT_ERRORS: Final = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def fail(message: str, code: int) -> NoReturn:
    """Say why, and exit."""
    note(f"admission-gateway: {message}", fg="red")
    raise SystemExit(code)


def note(message: str, *, fg: str | None = None, err: bool = True) -> None:
    """Say something beside the report, on the standard error. Where that cannot be written (its disk is full, its
    reader has left), the words are lost: nothing is kept from starting, and no exit code changes.

    Args:
        message: a line.
        fg: its colour on a terminal.
        err: False: on the standard output, of a command that reports nothing.
    """
    with contextlib.suppress(OSError):
        click.secho(message, fg=fg, err=err)


class CommandGroup(click.Group):
    """A group of commands whose standard streams may be in any state."""

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command; exit 2 if its output cannot be written, with a word on why unless its reader has left."""
        _open_closed()
        if os.environ.get("NO_COLOR"):
            # no-color.org: "when present and not an empty string (regardless of its value), prevents ... color".
            ctx.color = False
        try:
            return self._invoked(ctx)
        finally:
            _forget_unwritten()

    def _invoked(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            # A file's error has its name, and is somebody else's to tell.
            if error.errno not in _OUTPUT_ERRORS or error.filename is not None:
                raise
            if error.errno != errno.EPIPE:
                note(f"admission-gateway: the output cannot be written: {error.strerror}", fg="red")
        _give_up_output()
        sys.exit(COULD_NOT)


def _open_closed() -> None:
    for descriptor, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is taken, which is this one: those below it are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            # Python found it closed, and has None there.
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


def _forget_unwritten() -> None:
    """What was said aside and could not be written goes nowhere (``note``); else it would be exit code 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _give_up_output()


def _give_up_output() -> None:
    """What is still buffered goes nowhere; else the interpreter would fail to write it once more as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
