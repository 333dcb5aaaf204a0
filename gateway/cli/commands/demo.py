"""``admission-gateway demo``: its options."""

from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.options import ADDRESS, option

_DIRECTORY: Final = click.Path(path_type=Path, file_okay=False)


@click.command()
@option(
    "--examples",
    type=_DIRECTORY,
    help="Directory with policies/ and reviews/ (AdmissionReviews as JSON). Default: the gateway's own samples.",
)
@option("--listen", type=ADDRESS, default="127.0.0.1:8443", help="The gateway's address; a free port if it is taken.")
@option(
    "--admin-listen", type=ADDRESS, default="127.0.0.1:9443", help="Health and metrics; a free port if it is taken."
)
@option("--tls-dev-dir", type=_DIRECTORY, default=".run/tls", help="Directory for the development certificates.")
@option("--once", is_flag=True, help="Exit after the reviews instead of continuing to serve.")
def demo(**values: Any) -> None:
    """Demonstrate the gateway: start it with sample policies, send it recorded reviews, and print the results.

    Exits after the reviews with --once, or if CI is set in the environment. Exit 0 if every review was answered.
    """
    from gateway.cli.demo import run

    run(**values)
