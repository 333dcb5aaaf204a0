"""What a hook leaves in its files, read as shell-operator reads it (its decoder is goccy/go-json).

Of the answer file:

* The first JSON value counts; text after it is ignored. It is an object, or ``null``, which says nothing.
* Names of members are known in any case; unknown members are ignored; of a member that is there twice the second one
  counts; ``null`` leaves a member as it was.
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
from dataclasses import dataclass
from typing import Any, Final

from gateway.depth import too_deep
from gateway.gotypes.base64_text import base64_mistake

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
_BEFORE_VALUES: Final = (b",", b"[", b"{")
"""Before each value of a JSON text, the outermost left aside, stands one of these. (They may stand in strings too.)"""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HIGHEST_CODE: Final = 599
_LOWEST_CODE: Final = 400


class AnswerError(Exception):
    """Text that is no answer, or no metrics. ``str(error)`` says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HookAnswer:
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
    if value is None:
        return HookAnswer()
    if not isinstance(value, _Members):
        raise AnswerError(f"it is {_type(value)}, and must be an object")
    members = value.folded()
    code, message = _status(members.get("status"))
    warnings = _warnings(members.get("warnings"))
    return HookAnswer(
        allowed=_typed(members, "allowed", bool, default=False),
        code=code,
        message=message if message is not None else _typed(members, "message", str, default=""),
        warnings=warnings,
        patch=_patch(_typed(members, "patch", str, default="")),
    )


def check_metrics(content: bytes) -> None:
    """See that a metrics file holds operations, one after another, and nothing else.

    Raises:
        AnswerError: it does not.
    """
    for value in _values(content):
        if not isinstance(value, _Members):
            if value is None:
                continue
            raise AnswerError(f"a metric is {_type(value)}, and must be an object")
        members = value.folded()
        for name in ("name", "group", "action"):
            _typed(members, name, str, default="")
        for name in ("add", "set", "value"):
            _number(members.get(name), name)
        for name, kind in (("labels", _Members), ("buckets", list)):
            if not isinstance(members.get(name), kind | None):
                raise AnswerError(f"a metric's {name} is {_type(members[name])}")


def check_conversion(content: bytes) -> None:
    """See that a conversion's answer is an object. Nobody has asked for one.

    Raises:
        AnswerError: it is not.
    """
    value = next(_values(content), _MISSING)
    if value is not None and not isinstance(value, _Members):
        raise AnswerError("it holds no object" if value is _MISSING else f"it is {_type(value)}, and must be an object")


class _Members:
    """A JSON object: its members in their order."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self._pairs = pairs

    def folded(self) -> dict[str, Any]:
        """By name in lower case; of equal ones the last that is not null."""
        members: dict[str, Any] = {}
        for name, value in self._pairs:
            if value is not None:
                members[name.lower()] = value
        return members


_MISSING: Final = object()


def _values(content: bytes) -> Iterator[Any]:
    """The JSON values in a text, one after another.

    Raises:
        AnswerError: what comes next is none.
    """
    if too_deep(content, DEPTH):
        raise AnswerError(f"it nests deeper than {DEPTH} levels")
    if sum(map(content.count, _BEFORE_VALUES)) > VALUES:
        raise AnswerError(f"it has more than {VALUES} values")
    # Go puts U+FFFD where the text is not UTF-8, as Python does; and for an escaped half of a surrogate pair.
    text = content.decode(errors="replace")
    decoder = json.JSONDecoder(object_pairs_hook=_Members, parse_constant=_refused, strict=False)
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


def _typed(members: dict[str, Any], name: str, kind: type, *, default: Any) -> Any:
    value = members.get(name, default)
    if not isinstance(value, kind):
        raise AnswerError(f"{name} is {_type(value)}, and must be {_NAMES[kind]}")
    return _unicode(value) if isinstance(value, str) else value


def _unicode(text: str) -> str:
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _number(value: Any, name: str) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise AnswerError(f"a metric's {name} is {_type(value)}, and must be a number")


def _warnings(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise AnswerError(f"warnings is {_type(value)}, and must be an array of strings")
    if len(value) > SAYINGS:
        raise AnswerError(f"there are {len(value)} warnings in it, and at most {SAYINGS} are read")
    for each in value:
        if each is not None and not isinstance(each, str):
            raise AnswerError(f"a warning is {_type(each)}, and must be a string")
    return tuple(_unicode(each or "") for each in value)


def _patch(text: str) -> bytes:
    if base64_mistake(text) is not None:
        raise AnswerError("patch is no base64; it must be that of a JSON Patch, an array of operations")
    return base64.b64decode(text)


def _status(value: Any) -> tuple[int, str | None]:
    """Code and message of the original proposal's form."""
    members = value.folded() if isinstance(value, _Members) else {}
    code, message = members.get("code"), members.get("message")
    if not isinstance(code, int) or not _LOWEST_CODE <= code <= _HIGHEST_CODE:
        code = DENIED_CODE
    return code, _unicode(message) if isinstance(message, str) else None


_NAMES: Final = {bool: "a boolean", str: "a string", list: "an array", _Members: "an object"}


def _type(value: Any) -> str:
    """What it is, in JSON's words."""
    return _NAMES.get(type(value), "null" if value is None else "a number")
