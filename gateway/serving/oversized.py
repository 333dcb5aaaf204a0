"""Finds the uid of a review that is too large, in its first bytes, and what else they say of it.

The answer to such a review is a denial with code 413, which the API server accepts only with the request's uid. The API
server writes ``kind``, ``apiVersion`` and ``request.uid`` first, but the order of members has no meaning in JSON. So
the reader scans the members of the document, then those of ``request``, in any order, until the prefix ends. It skips
the values of other members, and with them other uids (``request.object.metadata.uid``).

The API server writes what the request is about, and who sent it, before the objects: mostly all of that is there too,
and the review can be recorded.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Raw, Struct

from gateway.engine.trace_context import TraceContext
from gateway.review.request import Request, ReviewError
from gateway.serving.plans import Target

_VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
_LONGEST_UID: Final = 128
"""The API server's uids are UUIDs, 36 characters; other clients may have others."""

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_decode: Final = json.JSONDecoder().raw_decode


class Envelope(Struct, frozen=True, kw_only=True):
    """What an answer must repeat: ``uid``, in printable ASCII; ``api_version``, ``admission.k8s.io/`` v1 or v1beta1.

    ``request`` has the members that are whole; None if one is missing without which there is no AdmissionRequest.
    """

    uid: str
    api_version: str
    request: Request | None = None


class OversizedReview(Struct, frozen=True, kw_only=True):
    """A review whose body is too large: what its beginning says, and ``why``, for the client.

    ``started`` is when it arrived, ``ends`` when its budget ends (``time.monotonic``).
    """

    envelope: Envelope
    target: Target
    trace: TraceContext
    started: float
    ends: float
    why: str


def envelope(prefix: bytes) -> Envelope | None:
    """The envelope of the AdmissionReview that begins with ``prefix``; None if the prefix lacks the uid, or is that of
    something else.

    ``prefix`` may end anywhere, also inside a character. Without ``apiVersion`` in front of the uid, v1 is assumed.
    Never raises.
    """
    # Only the last character can be cut; a uid with U+FFFD in it is refused below.
    text = prefix.decode("utf-8", "replace")
    seen: dict[str, Any] = {}
    try:
        for name, at in _members(text, 0):
            if name == "request":
                return _made(seen, _member(text, at, "uid"), text, at)
            if name in {"kind", "apiVersion"}:
                seen[name] = _decode(text, at)[0]
    except (ValueError, RecursionError):
        # Not JSON, deeper than this interpreter reads, or cut before the uid.
        return None
    return None


def _made(seen: dict[str, Any], uid: Any, text: str, at: int) -> Envelope | None:
    if not isinstance(uid, str) or not 0 < len(uid) <= _LONGEST_UID or not (uid.isascii() and uid.isprintable()):
        return None
    version = seen.get("apiVersion", _VERSIONS[0])
    if not seen or seen.get("kind", "AdmissionReview") != "AdmissionReview" or version not in _VERSIONS:
        return None
    return Envelope(uid=uid, api_version=version, request=_request(text, at, version))


def _request(text: str, start: int, api_version: str) -> Request | None:
    """The request that begins at ``start``, of the members that are whole."""
    members: dict[str, Raw] = {}
    try:
        for name, at in _members(text, start):
            members.setdefault(name, Raw(text[at : _decode(text, at)[1]].encode()))
    except (ValueError, RecursionError):
        # Cut here: what is in front of it is enough, or is not.
        pass
    try:
        return Request(api_version, members)
    except ReviewError:
        return None


def _member(text: str, start: int, wanted: str) -> Any:
    """The value of one member of the object that opens at ``start``; None without one, ValueError if it is cut."""
    return next((_decode(text, at)[0] for name, at in _members(text, start) if name == wanted), None)


def _members(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Name and position of the value, for each member of the object that opens at ``start``; ValueError where the text
    is cut.
    """
    at = _after(text, start, "{")
    while at is not None:
        name, at = _decode(text, _blanks(text, at))
        value = _after(text, at, ":")
        if value is None or not isinstance(name, str):
            return
        value = _blanks(text, value)
        yield name, value
        at = _after(text, _decode(text, value)[1], ",")


def _after(text: str, at: int, mark: str) -> int | None:
    """The position after ``mark``, if the text has it next; else None."""
    at = _blanks(text, at)
    return at + 1 if text.startswith(mark, at) else None


def _blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
