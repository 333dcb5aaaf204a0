"""Types: those of declarations, of expressions, and as values (``type(x) == int``).

A type is written as in a signature: ``list(string)``, ``map(A, B)``, ``kubernetes.URL``; one capital letter is a type
parameter.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final


class Kind(Enum):
    """What sort of type it is; the sorts that the checker tells apart."""

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


@dataclass(frozen=True, slots=True)
class Type:
    """``name`` is the one that programs see: ``google.protobuf.Timestamp``, ``null_type``."""

    kind: Kind
    name: str
    parameters: tuple["Type", ...] = ()

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


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type(Kind.MAP, "map", (key, value))


def type_of_type(named: Type) -> Type:
    """``type(named)``: what the name of a type has as its type."""
    return Type(Kind.TYPE, "type", (named,))


def optional_of(value: Type) -> Type:
    """``optional_type(value)``."""
    return Type(Kind.OPAQUE, OPTIONAL_NAME, (value,))


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
_PART: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.]*|[(),])")


@lru_cache(maxsize=512)
def written(text: str) -> Type:
    """The type that is written so."""
    found, rest = _read(_PART.findall(text))
    if rest:
        raise ValueError(f"the type {text!r} goes on after its end: {rest}")
    return found


def _read(parts: list[str]) -> tuple[Type, list[str]]:
    name, rest = parts[0], parts[1:]
    inner: list[Type] = []
    if rest[:2] == ["(", ")"]:
        rest = rest[2:]
    elif rest[:1] == ["("]:
        while rest[0] != ")":
            found, rest = _read(rest[1:])
            inner.append(found)
        rest = rest[1:]
    return _named(name, tuple(inner)), rest


def _named(name: str, inner: tuple[Type, ...]) -> Type:
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in {"list", "map", "type"}:
        return Type(Kind(name), name, inner)
    if name in _OPAQUE:
        return Type(Kind.OPAQUE, name, inner)
    return parameter(name) if len(name) == 1 else message(name)
