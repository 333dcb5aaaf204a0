"""``admission-gateway new-worker``: its options."""

from pathlib import Path
from typing import Final

import click

LANGUAGES: Final = {"go": "Go", "python": "Python", "node": "JavaScript", "rust": "Rust", "java": "Java"}
"""What ``--lang`` takes, and what people call it."""


@click.command("new-worker")
# No variables: they are said once, for one project.
@click.option("--lang", type=click.Choice(list(LANGUAGES)), required=True, help="The language of its policies.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    help="Where to write it: a new directory, or an empty one; without it, ./NAME.",
)
@click.option("--namespace", default="policies", show_default=True, help="The namespace in which it will run.")
@click.argument("name", metavar="NAME")
def new_worker(lang: str, directory: Path | None, namespace: str, name: str) -> None:
    """Write a project for a worker NAME: a policy with its tests, and all that builds, runs and deploys it.

    It passes its own tests and the conformance kit as it is, and carries a copy of the SDK in sdk/, so that it builds
    alone. Exit 0 if it is written, 2 if not: then nothing is.
    """
    from gateway.cli.new_worker import run

    run(lang, directory, namespace, name)
