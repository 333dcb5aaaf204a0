"""The Content-Type of an answer: kube-apiserver only requires that it can be parsed (Go's mime.ParseMediaType).

The body is read as JSON with any Content-Type, and without one.
"""

import re
from typing import Final

_WORD: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_BLANK: Final = r"[ \t\r\n\f\v]*"
_MEDIA: Final = re.compile(rf"{_BLANK}({_WORD})(/?)({_WORD})?{_BLANK}\Z")
_PARAMETER: Final = re.compile(
    rf"{_BLANK};{_BLANK}({_WORD}){_BLANK}={_BLANK}(?:\"(?:[^\"\\\r\n]|\\.)*\"|{_WORD})", re.ASCII
)
_END: Final = re.compile(rf"{_BLANK};?{_BLANK}\Z")


class MediaTypeError(Exception):
    """It cannot be parsed; ``str(error)`` is Go's message."""


def media_type(value: str) -> str:
    """TYPE/SUBTYPE, in lower case.

    Raises:
        MediaTypeError: the value is invalid.
    """
    base, _, _ = value.partition(";")
    if not base.strip():
        raise MediaTypeError("mime: no media type")
    match = _MEDIA.match(base)
    if match is None:
        raise MediaTypeError(
            "mime: unexpected content after media subtype" if "/" in base else "mime: expected slash after first token"
        )
    if match[2] and not match[3]:
        raise MediaTypeError("mime: expected token after slash")
    if not match[2] and match[3]:
        raise MediaTypeError("mime: expected slash after first token")
    _parameters(value[len(base) :])
    return base.strip().lower()


def _parameters(text: str) -> None:
    names: set[str] = set()
    at = 0
    while (match := _PARAMETER.match(text, at)) is not None:
        name = match[1].lower()
        if name in names:
            raise MediaTypeError("mime: duplicate parameter name")
        names.add(name)
        at = match.end()
    if _END.match(text, at) is None:
        raise MediaTypeError("mime: invalid media parameter")
