"""``admission-gateway doctor``: its options."""

from pathlib import Path
from typing import Any

import click

from gateway.cli.commands.registering_options import registering_options
from gateway.cli.hook_options import hooks_options
from gateway.cli.options import option, output_option


@click.command()
@option("--policies", type=click.Path(path_type=Path), multiple=True, help="File or directory; repeatable.")
@hooks_options
@registering_options
@option("--redis", metavar="URL", help="Redis of the gateway, whose Pods must be able to start.")
@option("--cluster", is_flag=True, help="Look at the cluster too, with the pod's service account.")
@option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Look at the cluster too, with this kubeconfig file.",
)
@click.option("--force", is_flag=True, help="Exit with 0 in spite of findings that refuse, and say so.")
@output_option("text", "json", help="Format of the report.")
def doctor(policies: tuple[Path, ...], output: str, **values: Any) -> None:
    """Report what registering the policies could lock: requests that a cluster needs, and that would be refused while
    no gateway answers.

    Each finding has the rule that causes it, and a remedy. The other options are those of render. Exit 0 if no finding
    refuses the registration, 1 if one does, 2 if that is not known: errors in the policies, or files that cannot be
    read.
    """
    from gateway.cli.doctor import run

    run(policies, output, **values)
