"""``admission-gateway new-worker``: its options."""

from pathlib import Path
from typing import Final

import click

LANGUAGES: Final = {"go": "Go", "python": "Python", "node": "JavaScript", "rust": "Rust", "java": "Java"}
"""The values of ``--lang``, and the names of the languages."""


@click.command("new-worker")
# No environment variables: these options are given once per project.
@click.option("--lang", type=click.Choice(list(LANGUAGES)), required=True, help="Language of the policies.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    help="Directory of the project: a new or an empty one. Default: ./NAME.",
)
@click.option("--namespace", default="policies", show_default=True, help="Namespace of the worker.")
@click.argument("name", metavar="NAME")
def new_worker(lang: str, directory: Path | None, namespace: str, name: str) -> None:
    """Create a project for a worker NAME: a policy with tests, and files to build, run and deploy it.

    The new project passes its own tests and the conformance kit. It contains a copy of the SDK in sdk/, so that it
    builds without other sources. Exit 0 if the project was created, 2 if nothing was created.
    """
    from gateway.cli.new_worker import run

    run(lang, directory, namespace, name)
