"""What tokens of literals stand for: strings and bytes (cel-go's parser/unescape.go), numbers."""

import re
from collections.abc import Callable
from typing import Final

from gateway.cel.values.numbers import LARGEST_INT, LARGEST_UINT, SMALLEST_INT, Uint

_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPES: Final = re.compile(
    r"\\(?:([abfnrtv\"'?`\\])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))"
)
_SURROGATES: Final = range(0xD800, 0xE000)
_LARGEST: Final = 0x10FFFF


def unquote(token: str) -> str:
    """The value of a string token; raises ValueError with cel-go's words."""
    body, raw = _body(token)
    return body if raw else _ESCAPES.sub(_character, body)


def unquote_bytes(token: str) -> bytes:
    """The value of a bytes token: octal and hexadecimal escapes are bytes; raises ValueError with cel-go's words."""
    body, raw = _body(token[1:])
    if raw:
        return body.encode()
    parts: list[bytes] = []
    position = 0
    for match in _ESCAPES.finditer(body):
        parts.append(body[position : match.start()].encode())
        simple, byte, short, long, octal = match.groups()
        if short or long:
            raise ValueError("unable to unescape string")
        parts.append(_SIMPLE[simple].encode() if simple else bytes([int(byte, 16) if byte else int(octal, 8)]))
        position = match.end()
    return b"".join([*parts, body[position:].encode()])


def _body(token: str) -> tuple[str, bool]:
    """What stands between the quotes, and whether the string is raw. (All strings normalize newlines.)"""
    token = token.replace("\r\n", "\n").replace("\r", "\n")
    raw = token[0] in "rR"
    token = token[raw:]
    width = 3 if token[:3] in {'"""', "'''"} and len(token) >= 6 else 1  # noqa: PLR2004 - two quotes of three characters
    return token[width:-width], raw


def _character(match: re.Match[str]) -> str:
    simple, byte, short, long, octal = match.groups()
    if simple:
        return _SIMPLE[simple]
    code = int(octal, 8) if octal else int(byte or short or long, 16)
    if code > _LARGEST or code in _SURROGATES:
        raise ValueError("invalid unicode code point")
    return chr(code)


# ---------------------------------------------------------------------------------------------- numbers
_LONGEST_NUMBER: Final = 1_000
"""Characters; Python reads no integer of more than 4,300, and a literal needs no so many leading zeros."""


def _integer(sign: str, text: str) -> int | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    value = int(f"{sign}{text}", 16 if text.startswith("0x") else 10)
    return value if SMALLEST_INT <= value <= LARGEST_INT else None


def _unsigned(_sign: str, text: str) -> Uint | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    value = int(text[:-1], 16 if text.startswith("0x") else 10)
    return Uint(value) if value <= LARGEST_UINT else None


def _double(sign: str, text: str) -> float | None:
    value = float(sign + text)
    return None if value in {float("inf"), float("-inf")} else value


NUMBERS: Final[dict[str, Callable[[str, str], int | float | None]]] = {
    "int": _integer,
    "uint": _unsigned,
    "float": _double,
}
"""By kind of token: a sign and the text of the token -> the number; None if no number of that kind can hold it."""
