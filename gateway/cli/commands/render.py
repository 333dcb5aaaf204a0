"""``admission-gateway render``: its options, most of which other commands have too."""

from pathlib import Path
from typing import Any

import click

from gateway.cli.commands.registering_options import registering_options
from gateway.cli.hook_options import hooks_options
from gateway.cli.options import output_option


@click.command()
@click.argument("paths", metavar="[PATH]...", type=click.Path(path_type=Path), nargs=-1)
@hooks_options
@registering_options
@output_option("yaml", "json", help="Output format.")
@click.option(
    "--manifest",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the objects to DIR/mutating and DIR/validating instead, for an API server that loads webhooks from "
    "files (Kubernetes 1.36, alpha).",
)
def render(paths: tuple[Path, ...], output: str, manifest: Path | None, **values: Any) -> None:
    """Print the objects that register the policies in PATH... (- is the standard input) and hooks with kube-apiserver.

    A MutatingWebhookConfiguration and a ValidatingWebhookConfiguration, with one webhook for each entry (see check).
    Set the gateway's address for kube-apiserver: --service or --url. Exit 1 if the policies have an error.

    Warnings say what could lock the cluster (see doctor).
    """
    from gateway.cli.render import run

    run(paths, output, manifest=manifest, **values)
