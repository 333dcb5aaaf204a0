"""How every command ends: 0 done, 1 mistakes in the configuration, 2 could not (or wrong usage)."""

from typing import Final, NoReturn

import click

WRONG_CONFIGURATION: Final = 1
COULD_NOT: Final = 2


def fail(message: str, code: int) -> NoReturn:
    """Say why, and exit."""
    click.secho(f"admission-gateway: {message}", fg="red", err=True)
    raise SystemExit(code)
