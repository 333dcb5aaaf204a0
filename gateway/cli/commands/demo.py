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
    help="Holds policies/ and reviews/ (AdmissionReviews as JSON). Default: those that come with the gateway.",
)
@option("--listen", type=ADDRESS, default="127.0.0.1:8443", help="The gateway's address; a free port if it is taken.")
@option(
    "--admin-listen", type=ADDRESS, default="127.0.0.1:9443", help="Health and metrics; a free port if it is taken."
)
@option("--tls-dev-dir", type=_DIRECTORY, default=".run/tls", help="Where the development certificates are kept.")
@option("--once", is_flag=True, help="End after the reviews instead of serving on.")
def demo(**values: Any) -> None:
    """Show the gateway at work: start it with sample policies, send it recorded reviews, tell what happened.

    Ends by itself with --once, or where CI is set in the environment. Exit 0 if every review was answered.
    """
    from gateway.cli.demo import run

    run(**values)
