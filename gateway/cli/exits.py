"""How every command ends: 0 done, 1 mistakes in the configuration, 2 could not (or wrong usage); what it says aside."""

import contextlib
from typing import Final, NoReturn

import click

WRONG_CONFIGURATION: Final = 1
COULD_NOT: Final = 2


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
