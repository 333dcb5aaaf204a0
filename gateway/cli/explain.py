"""``admission-gateway explain``: the explanation of a review, by a running gateway.

Exit codes, for scripts:

    ====  ===============================================================================================
    0     found
    1     no decision of this uid is retained; the message says since when decisions are
    2     failed: the gateway is unreachable, or rejects the client or the uid
    ====  ===============================================================================================
"""

from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click
import msgspec

from gateway.cli.admin_client import call
from gateway.cli.standard_streams import COULD_NOT, fail
from gateway.serving.explain import KIND, PATH
from gateway.telemetry.explanation import explanation_lines

_ANSWER_BYTES: Final = 100_000_000
"""The maximum size of an explanation: 3 MB of each of thirty replicas, where most have nothing."""

_COLOURS: Final = {"ALLOWED": "green", "DENIED": "red", "FAILED": "red"}


def run(uid: str, admin: str, token_file: Path | None, output: str) -> None:
    """See the command."""
    content = call(admin, PATH + quote(uid, safe=""), token_file, limit=_ANSWER_BYTES)
    try:
        explanation: Any = msgspec.json.decode(content)
        lines = list(explanation_lines(explanation)) if explanation["kind"] == KIND else []
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError, IndexError, ValueError):
        lines = []
    if not lines:
        fail(f"the server at {admin} is not a gateway's admin listener", COULD_NOT)
    if output == "json":
        click.echo(content)
        return
    for line in lines:
        word, colon, rest = line.partition(":")
        colour = _COLOURS.get(word)
        click.echo(line if colour is None else click.style(word, fg=colour, bold=True) + colon + rest)
