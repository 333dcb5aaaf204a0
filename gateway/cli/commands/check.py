"""``admission-gateway check``: its options."""

from pathlib import Path
from typing import Any

import click

from gateway.cli.commands.transport_options import reaching_options
from gateway.cli.hook_options import hooks_options
from gateway.cli.options import SECONDS, option, output_option


@click.command()
@click.argument("paths", metavar="[PATH]...", type=click.Path(path_type=Path), nargs=-1)
@hooks_options
@click.option("--with-workers", is_flag=True, help="Also connect to the workers, and report what they reject.")
@option("--worker-startup-timeout", type=SECONDS, default=15.0, help="Maximum seconds to wait for the workers.")
@reaching_options
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="error", help="Log level.")
@output_option("text", "json", help="Format of the report.")
def check(paths: tuple[Path, ...], output: str, **values: Any) -> None:
    """Report all errors in the files and directories PATH... (- is the standard input) and hooks, and explain the
    configuration.

    The report has the calls that kube-apiserver makes, the policies of each call, why a policy is not in an earlier
    call, and how long the calls may take. Exit 0 without errors, 1 with errors, 2 if a file cannot be read or a worker
    cannot be reached.
    """
    from gateway.cli.check import run

    run(paths, output, **values)
