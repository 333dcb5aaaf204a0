"""``admission-gateway purge`` and ``explain``, which call a gateway's admin listener: their options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from gateway.cli.options import option, output_option

DEFAULT: Final = "http://127.0.0.1:9443"
"""Where serve's admin listener is by default."""

_F = TypeVar("_F", bound=Callable[..., Any])


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


def _admin_options(command: _F) -> _F:
    """``--admin`` and ``--admin-token-file``."""
    command = option(
        "--admin-token-file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Tokens for the admin listener, as for serve; the first one is sent.",
    )(command)
    return option("--admin", type=AdminUrl(), default=DEFAULT, help="URL of the gateway's admin listener.")(command)


@click.command()
@click.argument("policies", metavar="POLICY...", nargs=-1, required=True)
@_admin_options
def purge(policies: tuple[str, ...], admin: str, admin_token_file: Path | None) -> None:
    """Purge the cached verdicts of each POLICY (CONFIGURATION/NAME) from a gateway; with Redis, from all its replicas.

    Without --admin-token-file the gateway accepts purges only from its own machine: in a cluster, run this in the pod.
    Exit 0 if purged, 1 if
    there is no such policy with a cache, 2 if the gateway is unreachable or could not notify the other replicas.
    """
    from gateway.cli.purge import run

    run(policies, admin, admin_token_file)


@click.command()
@click.argument("uid")
@_admin_options
@output_option("text", "json", help="The story and a table, or one document; docs/reference/documents.md.")
def explain(uid: str, admin: str, admin_token_file: Path | None, output: str) -> None:
    """Explain a review: who denied it and where that policy is configured, which fields were changed by whom, what was
    called, where the time went, and whom to ask.

    UID is in the message of a denial whose policy has a contact or documentation, and in the decision log.
    Without --admin-token-file the gateway explains only to its own machine: in a cluster, run this in the pod.
    Exit 0
    if found, 1 if no decision of this review is retained, 2 if the gateway is unreachable.
    """
    from gateway.cli.explain import run

    run(uid, admin, admin_token_file, output)
