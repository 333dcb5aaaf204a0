"""``admission-gateway purge``: its options."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from gateway.cli.options import option


class AdminUrl(click.ParamType[str]):
    """The URL of a gateway's admin listener: ``http://HOST:PORT``."""

    name = "http://HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The URL without a trailing slash, or click's error with the reason."""
        try:
            parts = urlsplit(value)
            port = parts.port
        except ValueError:
            self.fail(f"{_printable(value)} is not http://HOST:PORT", param, ctx)
        well = parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0
        if not well or parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None:
            self.fail(f"{_printable(value)} is not http://HOST:PORT", param, ctx)
        return f"{parts.scheme}://{parts.netloc}"


def _printable(url: str) -> str:
    """The given value, without a user or password in it."""
    return "a URL with a user or password" if "@" in url else repr(url)


@click.command()
@click.argument("policies", metavar="POLICY...", nargs=-1, required=True)
@option("--admin", type=AdminUrl(), default="http://127.0.0.1:9443", help="URL of the gateway's admin listener.")
@option(
    "--admin-token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Tokens for the admin listener, as for serve; the first one is sent.",
)
def purge(policies: tuple[str, ...], admin: str, admin_token_file: Path | None) -> None:
    """Purge the cached verdicts of each POLICY (CONFIGURATION/NAME) from a gateway; with Redis, from all its replicas.

    Without --admin-token-file the gateway accepts purges only from its own machine: in a cluster, run this in the pod.
    Exit 0 if purged, 1 if
    there is no such policy with a cache, 2 if the gateway is unreachable or could not notify the other replicas.
    """
    from gateway.cli.purge import run

    run(policies, admin, admin_token_file)
