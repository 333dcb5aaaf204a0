"""``admission-gateway purge``: purge the cached verdicts of policies from a running gateway.

Exit codes, for scripts:

    ====  ===============================================================================================
    0     done: in all replicas that share Redis; without Redis, in this one
    1     one name is not that of a policy with a cache: nothing is purged
    2     failed: the gateway is unreachable, or rejects the client; or it purged its own cache, but could not write to
          Redis, so the other replicas are not notified
    ====  ===============================================================================================
"""

import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import click
import msgspec

from gateway.cli.standard_streams import COULD_NOT, fail
from gateway.quoting import clean
from gateway.serving.credential_files import ADMIN_TOKENS, CredentialError, credentials_in
from gateway.serving.purge import PATH

UNKNOWN: Final = 1

_ANSWER_SECONDS: Final = 15.0
"""Seconds to wait for the answer. With Redis a purge reads and writes markers, each within a second, after the purges
before it."""
_ANSWER_BYTES: Final = 100_000
"""The maximum size of an answer: no answer of a gateway is larger."""


class _Purged(msgspec.Struct):
    """The answer to a purge."""

    purged: list[str]
    reported: bool | None = msgspec.field(name="replicasNotified")
    why: str = ""


def run(policies: tuple[str, ...], admin: str, token_file: Path | None) -> None:
    """See the command."""
    headers = {}
    if token_file is not None:
        try:
            headers["Authorization"] = f"Bearer {credentials_in(token_file, ADMIN_TOKENS)[0]}"
        except CredentialError as error:
            fail(str(error), COULD_NOT)
    url = f"{admin}{PATH}?{urlencode([('policy', name) for name in policies])}"
    request = urllib.request.Request(url, method="POST", data=b"", headers=headers)  # noqa: S310 - http or https: AdminUrl has checked
    # Not through a proxy that the environment may name: the listener is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_ANSWER_SECONDS) as response:
            done = _answer(admin, response.read(_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            text = clean(error.read(_ANSWER_BYTES).decode(errors="replace")).strip()
        message = text.removeprefix("admission-gateway: ") or f"{admin} answered {error.code} {error.reason}"
        fail(message, UNKNOWN if error.code == HTTPStatus.NOT_FOUND else COULD_NOT)
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", None) or error
        why = getattr(cause, "strerror", None) or cause
        fail(f"cannot reach a gateway at {admin}: {why}; check that it runs with this --admin-listen", COULD_NOT)
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
