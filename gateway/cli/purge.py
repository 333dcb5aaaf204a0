"""``admission-gateway purge``: purge the cached verdicts of policies from a running gateway.

Exit codes, for scripts:

    ====  ===============================================================================================
    0     done: in all replicas that share Redis; without Redis, in this one
    1     one name is not that of a policy with a cache: nothing is purged
    2     failed: the gateway is unreachable, or rejects the client; or it purged its own cache, but could not write to
          Redis, so the other replicas are not notified
    ====  ===============================================================================================
"""

from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import click
import msgspec

from gateway.cli.admin_client import call
from gateway.cli.standard_streams import COULD_NOT, fail
from gateway.quoting import clean
from gateway.serving.purge import PATH

_ANSWER_BYTES: Final = 100_000
"""The maximum size of an answer: no answer of a gateway is larger."""


class _Purged(msgspec.Struct):
    """The answer to a purge."""

    purged: list[str]
    reported: bool | None = msgspec.field(name="replicasNotified")
    why: str = ""


def run(policies: tuple[str, ...], admin: str, token_file: Path | None) -> None:
    """See the command."""
    target = f"{PATH}?{urlencode([('policy', name) for name in policies])}"
    done = _answer(admin, call(admin, target, token_file, method="POST", limit=_ANSWER_BYTES))
    names = ", ".join(dict.fromkeys(policies))
    if done.reported is False:
        click.echo(f"purged in this replica only: {names}")
        cause = clean(done.why) or "Redis did not answer in time"
        fail(f"the other replicas are not notified: {cause}; while this replica runs, it retries", COULD_NOT)
    click.echo(f"purged: {names}")


def _answer(admin: str, content: bytes) -> _Purged:
    """The gateway's answer; another server at this address might answer 200 to each request."""
    try:
        return msgspec.json.decode(content, type=_Purged)
    except msgspec.MsgspecError:
        fail(f"the server at {admin} is not a gateway's admin listener", COULD_NOT)
