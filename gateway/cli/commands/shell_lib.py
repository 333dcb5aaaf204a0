"""``admission-gateway shell-lib``: the library that shell hooks source, to be put where they look for it."""

import click


@click.command("shell-lib")
def shell_lib() -> None:
    """Print the library that hooks written for shell-operator source: admission-gateway shell-lib > /shell_lib.sh."""
    from importlib.resources import files

    click.echo(files("gateway.hooks").joinpath("shell_lib.sh").read_text(encoding="utf-8"), nl=False)
