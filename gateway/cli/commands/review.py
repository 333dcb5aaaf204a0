"""``admission-gateway review``, and ``recordings``, which prints what it takes: their options."""

from pathlib import Path
from typing import Any

import click

from gateway.cli.commands.transport_options import reaching_options
from gateway.cli.hook_options import hooks_options
from gateway.cli.options import SECONDS, SectionedCommand, limit_options, option, output_option


@click.command(cls=SectionedCommand)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@option("--policies", type=click.Path(path_type=Path), multiple=True, help="File or directory; repeatable.")
@hooks_options
@option(
    "--phase",
    type=click.Choice(("mutate", "validate", "both")),
    default="both",
    help="both: validate the object after mutation.",
)
@option("--entry", metavar="NAME", help="Only this entry of the phase, as a recording names it.")
@reaching_options
@option("--no-prefetch", is_flag=True, help="Call mutating policies one after another, without prefetch.")
@option("--worker-startup-timeout", type=SECONDS, default=15.0, help="Maximum seconds to wait for the workers.")
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="error", help="Log level.")
@output_option("text", "json", help="Format of the report.")
@limit_options()
def review(files: tuple[str, ...], policies: tuple[Path, ...], **values: Any) -> None:
    """Decide the AdmissionReviews in FILE... (JSON or YAML, one or several; - is standard input) as serve would.

    Exit 0 if all are allowed, 1 if one is refused, 2 if one could not be decided.
    """
    from gateway.cli.review import run

    run(files, policies, **values)


@click.command()
@click.argument("places", metavar="FILE|DIRECTORY...", nargs=-1, required=True, type=click.Path(path_type=Path))
@option("--recording-key-file", type=click.Path(path_type=Path, dir_okay=False), required=True, help="As for serve.")
@option("--phase", type=click.Choice(("mutate", "validate")), help="Only the recordings of this phase.")
@option("--entry", metavar="NAME", help="Only the recordings of this entry.")
@output_option("reviews", "json", help="reviews: what review takes; json: with the decisions.")
def recordings(places: tuple[Path, ...], **values: Any) -> None:
    """Print the reviews that serve has recorded, one on each line, the oldest first.

    With -o reviews only those whose verdicts depend on nothing that the recording leaves out: give them to review with
    the same --phase and --entry. Exit 0 if all could be read, 1 if some are damaged or encrypted with another key, 2 if
    a file is no recording or cannot be read.
    """
    from gateway.cli.recordings import run

    run(places, **values)
