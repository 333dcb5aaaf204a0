"""Calls a gateway's admin listener, for ``purge`` and ``explain``. What goes wrong ends the command with one line.

Exit codes: 1 for what the gateway does not know (404), 2 for every other error.
"""

import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Final

from gateway.cli.standard_streams import COULD_NOT, fail
from gateway.quoting import clean
from gateway.serving.credential_files import ADMIN_TOKENS, CredentialError, credentials_in

UNKNOWN: Final = 1

_ANSWER_SECONDS: Final = 15.0
"""Seconds to wait for the answer. With Redis a purge reads and writes markers, each within a second, after the purges
before it; an explanation asks the other replicas twice, for a second each."""
_REFUSAL_BYTES: Final = 100_000
"""The maximum size of a refusal: no gateway's is larger."""


def call(admin: str, target: str, token_file: Path | None, *, method: str = "GET", limit: int) -> bytes:
    """The body of the answer, if its status is 200; else the command ends.

    Args:
        admin: the URL of the admin listener.
        target: path and query.
        token_file: the first of its tokens is sent; None: none is.
        method: of HTTP; a POST has an empty body.
        limit: the most bytes of the answer.
    """
    headers = {}
    if token_file is not None:
        try:
            headers["Authorization"] = f"Bearer {credentials_in(token_file, ADMIN_TOKENS)[0]}"
        except CredentialError as error:
            fail(str(error), COULD_NOT)
    data = b"" if method == "POST" else None
    request = urllib.request.Request(f"{admin}{target}", method=method, data=data, headers=headers)  # noqa: S310 - http or https: AdminUrl has checked
    # Not through a proxy that the environment may name: the listener is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_ANSWER_SECONDS) as response:
            body: bytes = response.read(limit)
            return body
    except urllib.error.HTTPError as error:
        with error:
            text = clean(error.read(_REFUSAL_BYTES).decode(errors="replace")).strip()
        message = text.removeprefix("admission-gateway: ") or f"{admin} answered {error.code} {error.reason}"
        fail(message, UNKNOWN if error.code == HTTPStatus.NOT_FOUND else COULD_NOT)
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", None) or error
        why = getattr(cause, "strerror", None) or cause
        fail(f"cannot reach a gateway at {admin}: {why}; check that it runs with this --admin-listen", COULD_NOT)
