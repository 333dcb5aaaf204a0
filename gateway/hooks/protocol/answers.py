"""The files that a hook leaves, decoded as shell-operator decodes them (with goccy/go-json).

Of the answer file:

* The first JSON value counts; text after it is ignored. It is an object, or ``null``, which is an empty answer.
* Members are matched without regard to letter case; unknown members are ignored; of a repeated member the last one
  counts, but a wrong type is an error in each; ``null`` empties a list, and does not change other members.
* ``allowed`` is a boolean, ``message`` a string, ``warnings`` an array of strings, ``patch`` the base64 of a JSON
  Patch. Another type is an error. An absent member is false, or empty.
* A string may contain control characters, which goccy/go-json accepts: a shell's ``echo`` writes line ends into it.

The form of the original proposal is accepted as well: ``{"allowed": false, "status": {"code": 403, "message": "…"}}``.
A wrong type in it is no error, because shell-operator ignores ``status``.

Metrics are validated and ignored. Metrics that cannot be decoded are an error, as in shell-operator.
"""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.depth import most_values, too_deep
from gateway.gotypes.base64_text import base64_error
from gateway.gotypes.places import DecodeError
from gateway.gotypes.types import (
    ANYTHING,
    BOOL,
    INT64,
    STRING,
    STRINGS,
    GoType,
    ListOf,
    MapOf,
    Number,
    Struct,
    read,
)
from gateway.gotypes.values import json_object

DENIED_CODE: Final = 403
"""Of a denial without a code."""

DEPTH: Final = 256
"""Levels of JSON: no patch of a Kubernetes object needs more (see ``gateway.bounds``)."""

MAX_WARNINGS: Final = 1000
"""Of one answer. kubectl shows 4 KiB of them at most."""

VALUES: Final = 1_000_000
"""JSON values in one file. Each takes some 100 bytes and a microsecond when it is decoded; an answer has ten, one of
them its patch."""

_BLANKS: Final = re.compile(r"[ \t\r\n]+")
_HIGHEST_CODE: Final = 599
_LOWEST_CODE: Final = 400


class AnswerError(Exception):
    """A file cannot be decoded. ``str(error)`` says why."""


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer file. ``code`` and ``message`` are those of a denial; ``patch`` is decoded from base64, and not
    parsed.
    """

    allowed: bool = False
    code: int = DENIED_CODE
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: bytes = b""


def read_answer(content: bytes) -> HookAnswer:
    """The answer in a file that is not empty.

    Raises:
        AnswerError: the file contains no answer.
    """
    value = next(json_values(content), _MISSING)
    if value is _MISSING:
        raise AnswerError("it contains only whitespace")
    members = _read(value, _ANSWER, "it")
    code, message = (_status(members.get("status"), name, kind) for name, kind in _STATUS.items())
    warnings = members.get("warnings", [])
    if len(warnings) > MAX_WARNINGS:
        raise AnswerError(f"it has {len(warnings)} warnings; the limit is {MAX_WARNINGS}")
    return HookAnswer(
        allowed=members.get("allowed", False),
        code=code if code is not None and _LOWEST_CODE <= code <= _HIGHEST_CODE else DENIED_CODE,
        message=members.get("message", "") if message is None else message,
        warnings=tuple(warnings),
        patch=_patch(members.get("patch", "")),
    )


def check_metrics(content: bytes) -> None:
    """Check that a file contains metric operations, one after another, and nothing else.

    Raises:
        AnswerError: it does not.
    """
    for value in json_values(content):
        _read(value, _METRIC, "a metric")


def check_conversion(content: bytes) -> None:
    """Check that the answer to a conversion is an object. (The gateway never requests a conversion.)

    Raises:
        AnswerError: it is not.
    """
    value = next(json_values(content), _MISSING)
    if value is _MISSING:
        raise AnswerError("it contains no object")
    _read(value, Struct(""), "it")


_MISSING: Final = object()


def json_values(content: bytes) -> Iterator[Any]:
    """The JSON values in a text, one after another.

    Raises:
        AnswerError: what follows is no JSON value.
    """
    if too_deep(content, DEPTH):
        raise AnswerError(f"it nests deeper than {DEPTH} levels")
    if most_values(content) > VALUES:
        raise AnswerError(f"it has more than {VALUES} values")
    # Like Python, Go replaces invalid UTF-8 by U+FFFD; Go also an escaped half of a surrogate pair.
    text = content.decode(errors="replace")
    decoder = json.JSONDecoder(object_pairs_hook=json_object, parse_constant=_refused, strict=False)
    at = 0
    while True:
        if blanks := _BLANKS.match(text, at):
            at = blanks.end()
        if at == len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise AnswerError(f"it is not JSON: {str(error)[:_SHOWN]}") from None
        yield value


_SHOWN: Final = 200
"""Characters of an error that are quoted."""


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _read(value: Any, kind: Struct, what: str) -> dict[str, Any]:
    """The decoded members of a value; none of ``null``."""
    try:
        return read(value, kind) or {}
    except DecodeError as error:
        named = f"{error.field} of {what}" if error.field else what
        raise AnswerError(f"{named} is {error.found}, and must be {error.expected}") from None


def _status(status: Any, name: str, kind: GoType) -> Any:
    """A member of the original proposal's form; None if it is absent, or has another type."""
    try:
        return (read(status, Struct("", {name: kind}, folded=True)) or {}).get(name)
    except DecodeError:
        return None


def _patch(text: str) -> bytes:
    if base64_error(text) is not None:
        raise AnswerError("patch is not base64; it must be the base64 of a JSON Patch, an array of operations")
    return base64.b64decode(text)


_ANSWER: Final = Struct(
    "",
    {"allowed": BOOL, "message": STRING, "warnings": STRINGS, "patch": STRING, "status": ANYTHING},
    folded=True,
)
_STATUS: Final = {"code": INT64, "message": STRING}
_METRIC: Final = Struct(
    "",
    {
        **dict.fromkeys(("name", "group", "action"), STRING),
        **dict.fromkeys(("add", "set", "value"), Number()),
        "labels": MapOf(ANYTHING),
        "buckets": ListOf(ANYTHING),
    },
    folded=True,
)
