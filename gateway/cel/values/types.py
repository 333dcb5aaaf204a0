"""Types: those of declarations, of expressions, and as values (``type(x) == int``).

A type is written as in a signature: ``list(string)``, ``map(A, B)``, ``kubernetes.URL``; one capital letter is a type
parameter.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec


class Kind(StrEnum):
    """What sort of type it is; as the checker distinguishes them."""

    __hash__ = str.__hash__  # an Enum's own is a function in Python, and types are hashed all through compiling

    DYN = "dyn"
    ERROR = "error"
    NULL = "null"
    BASIC = "basic"
    TIME = "time"
    LIST = "list"
    MAP = "map"
    TYPE = "type"
    OPAQUE = "opaque"
    MESSAGE = "message"
    PARAMETER = "parameter"


class TypeTooLarge(Exception):  # noqa: N818 - it is named after what the expression has
    """A type has more than ``LARGEST_TYPE`` types in it."""


class Type(msgspec.Struct, frozen=True):
    """``name`` is the one that programs see: ``google.protobuf.Timestamp``, ``null_type``.

    ``size`` is 1 and those of the parameters; ``made_of`` counts it.
    """

    kind: Kind
    name: str
    parameters: tuple["Type", ...] = ()
    size: int = 1

    def __str__(self) -> str:
        """As in the API server's ``must evaluate to bool but got list(dyn)``."""
        name = f"<{self.name}>" if self.kind is Kind.PARAMETER else self.name
        return f"{name}({', '.join(map(str, self.parameters))})" if self.parameters else name

    @property
    def displayed(self) -> str:
        """As in the checker's errors (FormatCELType), where some types have short names."""
        short = _DISPLAYED.get(self.name, self.name) if self.kind in {Kind.NULL, Kind.TIME, Kind.ERROR} else self.name
        return f"{short}({', '.join(p.displayed for p in self.parameters)})" if self.parameters else short


_DISPLAYED: Final = {
    "null_type": "null",
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "error": "!error!",
}

DYN: Final = Type(Kind.DYN, "dyn")
ERROR: Final = Type(Kind.ERROR, "error")
NULL: Final = Type(Kind.NULL, "null_type")
BOOL: Final = Type(Kind.BASIC, "bool")
INT: Final = Type(Kind.BASIC, "int")
UINT: Final = Type(Kind.BASIC, "uint")
DOUBLE: Final = Type(Kind.BASIC, "double")
STRING: Final = Type(Kind.BASIC, "string")
BYTES: Final = Type(Kind.BASIC, "bytes")
TIMESTAMP: Final = Type(Kind.TIME, "google.protobuf.Timestamp")
DURATION: Final = Type(Kind.TIME, "google.protobuf.Duration")


LARGEST_TYPE: Final = 1_000
"""Types within a type. Literals nest 250 deep, and a map has a type for its keys and one for its values. But each
``.map(x, {x: x})`` doubles the type before it, so thirty of them would be worked at for ever."""


def made_of(kind: Kind, name: str, parameters: tuple[Type, ...]) -> Type:
    """A type that is made of others; raises TypeTooLarge."""
    size = 1
    for parameter_type in parameters:
        size += parameter_type.size
    if size > LARGEST_TYPE:
        raise TypeTooLarge
    return Type(kind, name, parameters, size)


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return made_of(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return made_of(Kind.MAP, "map", (key, value))


def type_of_type(named: Type) -> Type:
    """``type(named)``: what the name of a type has as its type."""
    return made_of(Kind.TYPE, "type", (named,))


def optional_of(value: Type) -> Type:
    """``optional_type(value)``."""
    return made_of(Kind.OPAQUE, OPTIONAL_NAME, (value,))


def message(name: str) -> Type:
    """A type with members (or, of the libraries, one that only has functions)."""
    return Type(Kind.MESSAGE, name)


def parameter(name: str) -> Type:
    """A type parameter."""
    return Type(Kind.PARAMETER, name)


OPTIONAL_NAME: Final = "optional_type"
LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
TYPE: Final = Type(Kind.TYPE, "type")
OPTIONAL: Final = optional_of(DYN)

_BY_NAME: Final = {
    **{kind.name: kind for kind in (DYN, BOOL, INT, UINT, DOUBLE, STRING, BYTES)},
    "null": NULL,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
}
_OPAQUE: Final = frozenset({"net.IP", "net.CIDR", OPTIONAL_NAME})
_INNER: Final = {"list": 1, "map": 2, "type": 1}
"""How many types these are made of; the name alone means all of them: ``list`` is ``list(dyn)``."""

_TOKEN: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.]*|[(),])\s*")


@lru_cache(maxsize=512)
def written(text: str) -> Type:
    """The type that is written so; raises ValueError if it is not written correctly."""
    found, rest = _read(text, _tokens(text))
    if rest:
        raise _unreadable(text)
    return found


@lru_cache(maxsize=512)
def all_written(text: str) -> tuple[Type, ...]:
    """The types in a pair of brackets: ``(string, list(A))``."""
    found, rest = _read_inner(text, _tokens(text))
    if rest:
        raise _unreadable(text)
    return found


def _unreadable(text: str) -> ValueError:
    return ValueError(f"{text!r} is no type: write int, list(string), map(string, dyn), timestamp or a message's name")


def _tokens(text: str) -> list[str]:
    found, end = [], 0
    while end < len(text):
        match = _TOKEN.match(text, end)
        if match is None:
            raise _unreadable(text)
        found.append(match[1])
        end = match.end()
    return found


def _read(text: str, tokens: list[str]) -> tuple[Type, list[str]]:
    if not tokens or tokens[0] in "(),":
        raise _unreadable(text)
    name, rest = tokens[0], tokens[1:]
    if rest[:1] != ["("]:
        return _named(text, name, (DYN,) * _INNER.get(name, 0)) if name != "type" else TYPE, rest
    inner, rest = _read_inner(text, rest)
    return _named(text, name, inner), rest


def _read_inner(text: str, tokens: list[str]) -> tuple[tuple[Type, ...], list[str]]:
    inner: list[Type] = []
    if tokens[:2] == ["(", ")"]:
        return (), tokens[2:]
    while tokens and tokens[0] == ("," if inner else "("):
        found, tokens = _read(text, tokens[1:])
        inner.append(found)
    if tokens[:1] != [")"]:
        raise _unreadable(text)
    return tuple(inner), tokens[1:]


def _named(text: str, name: str, inner: tuple[Type, ...]) -> Type:
    if len(inner) != _INNER.get(name, len(inner)):
        raise _unreadable(text)
    if name in _INNER:
        return made_of(Kind(name), name, inner)
    if name in _OPAQUE:
        return made_of(Kind.OPAQUE, name, inner)
    if inner:
        raise _unreadable(text)
    return _BY_NAME.get(name) or (parameter(name) if len(name) == 1 else message(name))
