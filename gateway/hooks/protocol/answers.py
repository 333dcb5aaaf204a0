"""What a hook leaves in its files, read as shell-operator reads it (its decoder is goccy/go-json).

Of the answer file:

* The first JSON value counts; text after it is ignored. It is an object, or ``null``, which says nothing.
* Names of members are known in any case; unknown members are ignored; of a member that is there twice the second one
  counts, but a wrong type is an error wherever it stands; ``null`` empties a list, and leaves all else as it was.
* ``allowed`` is a boolean, ``message`` a string, ``warnings`` an array of strings, ``patch`` the base64 of a JSON
  Patch. Another type is an error. What is absent is false, or empty.
* A string may hold control characters: a shell's ``echo`` writes line ends into it, and that decoder lets them pass.

The original proposal's form is read besides: ``{"allowed": false, "status": {"code": 403, "message": "…"}}``, which
shell-operator does not know. There a mistake is no error, for shell-operator ignores whatever is called ``status``.

Files of metrics are read and thrown away: there is nobody to whom they could be given. One that cannot be read is an
error, as it is there.
"""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.depth import most_values, too_deep
from gateway.gotypes.base64_text import base64_mistake
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
"""Of a denial by the hook that names no other."""

DEPTH: Final = 256
"""Levels of JSON: no patch of a Kubernetes object needs more (see ``gateway.bounds``)."""

SAYINGS: Final = 1000
"""Warnings of one answer. kubectl shows 4 KiB of them at most."""

VALUES: Final = 1_000_000
"""Values of JSON in one file. Each takes some 100 bytes and a microsecond when it is read; an answer has ten, its patch
being one of them."""

_BLANKS: Final = re.compile(r"[ \t\r\n]+")
_HIGHEST_CODE: Final = 599
_LOWEST_CODE: Final = 400


class AnswerError(Exception):
    """Text that is no answer, or no metrics. ``str(error)`` says why."""


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer file. ``code`` and ``message`` are for a denial; ``patch`` is what the base64 says, not looked at."""

    allowed: bool = False
    code: int = DENIED_CODE
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: bytes = b""


def read_answer(content: bytes) -> HookAnswer:
    """Read an answer file that is not empty.

    Raises:
        AnswerError: it is no answer.
    """
    value = next(_values(content), _MISSING)
    if value is _MISSING:
        raise AnswerError("there is nothing but blanks in it")
    said = _read(value, _ANSWER, "it")
    code, message = (_status(said.get("status"), name, kind) for name, kind in _STATUS.items())
    warnings = said.get("warnings", [])
    if len(warnings) > SAYINGS:
        raise AnswerError(f"there are {len(warnings)} warnings in it, and at most {SAYINGS} are read")
    return HookAnswer(
        allowed=said.get("allowed", False),
        code=code if code is not None and _LOWEST_CODE <= code <= _HIGHEST_CODE else DENIED_CODE,
        message=said.get("message", "") if message is None else message,
        warnings=tuple(warnings),
        patch=_patch(said.get("patch", "")),
    )


def check_metrics(content: bytes) -> None:
    """See that a metrics file holds operations, one after another, and nothing else.

    Raises:
        AnswerError: it does not.
    """
    for value in _values(content):
        _read(value, _METRIC, "a metric")


def check_conversion(content: bytes) -> None:
    """See that a conversion's answer is an object. Nobody has asked for one.

    Raises:
        AnswerError: it is not.
    """
    value = next(_values(content), _MISSING)
    if value is _MISSING:
        raise AnswerError("it holds no object")
    _read(value, Struct(""), "it")


_MISSING: Final = object()


def _values(content: bytes) -> Iterator[Any]:
    """The JSON values in a text, one after another.

    Raises:
        AnswerError: what comes next is none.
    """
    if too_deep(content, DEPTH):
        raise AnswerError(f"it nests deeper than {DEPTH} levels")
    if most_values(content) > VALUES:
        raise AnswerError(f"it has more than {VALUES} values")
    # Go puts U+FFFD where the text is not UTF-8, as Python does; and for an escaped half of a surrogate pair.
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
"""Characters of an error that are repeated."""


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _read(value: Any, kind: Struct, what: str) -> dict[str, Any]:
    """What the decoder makes of a value; nothing of ``null``."""
    try:
        return read(value, kind) or {}
    except DecodeError as error:
        named = f"{error.field} of {what}" if error.field else what
        raise AnswerError(f"{named} is {error.found}, and must be {error.expected}") from None


def _status(status: Any, name: str, kind: GoType) -> Any:
    """A member of the original proposal's form; None if it is not there, or is of another type."""
    try:
        return (read(status, Struct("", {name: kind}, folded=True)) or {}).get(name)
    except DecodeError:
        return None


def _patch(text: str) -> bytes:
    if base64_mistake(text) is not None:
        raise AnswerError("patch is no base64; it must be that of a JSON Patch, an array of operations")
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
