"""``admission-gateway check``: its options."""

from pathlib import Path
from typing import Any

import click

from gateway.cli.commands.reaching import reaching_options
from gateway.cli.hook_options import hooks_options
from gateway.cli.options import SECONDS, option


@click.command()
@click.argument("paths", metavar="[PATH]...", type=click.Path(path_type=Path), nargs=-1)
@hooks_options
@click.option("--with-workers", is_flag=True, help="Start or call the workers too, and tell what they refuse.")
@option("--worker-startup-timeout", type=SECONDS, default=15.0, help="Seconds at most to wait for the workers.")
@reaching_options
@option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="error", help="What is logged."
)
# No variable: the words differ from command to command.
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the report."
)
def check(paths: tuple[Path, ...], output: str, **values: Any) -> None:
    """Tell all mistakes in the files and directories PATH... (- is the standard input) and hooks, and what they mean.

    Which calls kube-apiserver makes, who is behind each, why a policy is not in an earlier one, and how long they may
    take. Exit 0 if there is no mistake, 1 if there is, 2 if a file cannot be read or a worker not be reached.
    """
    from gateway.cli.check import run

    run(paths, output, **values)
