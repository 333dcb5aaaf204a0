"""The JSON shape of a Kubernetes type, and what kube-apiserver's decoder makes of a JSON value that should have it.

The decoder is Go's (sigs.k8s.io/json, case-sensitive; where a type is ``folded``, encoding/json). Its rules, which are
laxer than a schema's:

* A member that the type does not know is ignored, and so is every member whose name differs in case.
* ``null`` is accepted everywhere, and says nothing: the field keeps its zero value; so does an element of a list or a
  map ("The JSON null value ... Otherwise, the JSON null value has no effect").
* Any other value of the wrong JSON type is an error. A number is an integer only if it is written as one (not 1.0, not
  1e3) and fits.
* ``[]byte`` is a string in base64, in which line breaks are ignored, or an array of small integers.

A shape is a value, built from the classes below; a type is a table of its fields.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Self

from gateway.base64_text import base64_mistake

Path = tuple[str, ...]
"""Where a value stands: names of fields, and in brackets the keys of maps and indexes of lists."""


class Repeated(dict[str, Any]):
    """An object in whose text a member stands more than once; ``pairs`` are all of them, in their order.

    Go decodes them one after another into the same place: a later value replaces an earlier one, two objects are put
    together, and a wrong type is an error wherever it stands.
    """

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


class Fraction(float):
    """A number that is written with a fraction or an exponent, which is no integer to Go; errors repeat its text."""

    def __new__(cls, text: str) -> Self:
        """The number that the text is."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __str__(self) -> str:
        """As it is written."""
        return self.text


_KINDS: Final = {
    dict: "object",
    Repeated: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    Fraction: "number",
}
_WITH_ARTICLE: Final = {
    dict: "an object",
    Repeated: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    Fraction: "a number",
}
_SHOWN: Final = 64
"""Characters of a map's key, or of a number, that an error repeats: a label's name part has at most 63."""


class ShapeError(ValueError):
    """A value of the wrong type. ``expected`` is in prose ("a string"), ``found`` too, and ``go`` is Go's own sentence.

    The value itself is in neither, but for a number: an object may be a Secret.
    """

    def __init__(self, path: Path, expected: str, found: str, go: str) -> None:
        super().__init__(go)
        self.path = path
        self.expected = expected
        self.found = found
        self.go = go

    @property
    def field(self) -> str:
        """The path as Kubernetes writes it: ``labels[app]``, ``ownerReferences[0].uid``."""
        return "".join([step if step.startswith("[") else f".{step}" for step in self.path]).removeprefix(".")


@dataclass(frozen=True, slots=True)
class Shape:
    """What all shapes have: ``go`` is the Go type's name, as its errors write it."""

    go: str

    def read(self, value: Any, at: "Place") -> Any:
        """What the decoder makes of ``value``, which is not None. Raises ShapeError."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a value stands, for errors: its path, the Go struct around it, and the names of the fields on the way."""

    path: Path = ()
    struct: str = ""
    names: tuple[str, ...] = ()

    def inside(self, key: str | int) -> "Place":
        """An element of a list or a value of a map: Go's errors do not name it."""
        shown = key if isinstance(key, int) or len(key) <= _SHOWN else f"{key[:_SHOWN]}…"
        return Place(path=(*self.path, f"[{shown}]"), struct=self.struct, names=self.names)

    def error(self, expected: str, value: Any, shape: Shape, *, literal: bool = False) -> ShapeError:
        """``value`` is not what ``shape`` expects; ``literal`` if Go's error repeats the number."""
        number = str(value)[:_SHOWN] if literal else ""
        found = f"{_KINDS[type(value)]} {number}" if literal else _KINDS[type(value)]
        into = f"struct field {self.struct}.{'.'.join(self.names)}" if self.names else "value"
        go = f"json: cannot unmarshal {found} into Go {into} of type {shape.go}"
        prose = f"the number {number}" if literal else _WITH_ARTICLE[type(value)]
        return ShapeError(self.path, expected, prose, go)


@dataclass(frozen=True, slots=True)
class Text(Shape):
    """A string, or a type made of one."""

    go: str = "string"

    def read(self, value: Any, at: Place) -> str:
        """The string, with what is no Unicode character replaced, as Go replaces it."""
        if type(value) is not str:
            raise at.error("a string", value, self)
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Flag(Shape):
    """A boolean."""

    go: str = "bool"

    def read(self, value: Any, at: Place) -> bool:
        """The boolean."""
        if type(value) is not bool:
            raise at.error("a boolean", value, self)
        return value


@dataclass(frozen=True, slots=True)
class Integer(Shape):
    """An integer of so many bits, signed unless its type says otherwise."""

    go: str = "int64"
    low: int = -(2**63)
    high: int = 2**63 - 1

    def read(self, value: Any, at: Place) -> int:
        """The integer."""
        if type(value) is int and self.low <= value <= self.high:
            return value
        raise at.error("an integer", value, self, literal=type(value) is not bool and isinstance(value, int | float))


INT32: Final = Integer("int32", -(2**31), 2**31 - 1)
INT64: Final = Integer()
_BYTE: Final = Integer("uint8", 0, 255)


@dataclass(frozen=True, slots=True)
class Anything(Shape):
    """A value of any type (runtime.RawExtension, FieldsV1)."""

    go: str = "runtime.RawExtension"

    def read(self, value: Any, at: Place) -> Any:  # noqa: ARG002 - all shapes are read alike
        """The value itself."""
        return value


@dataclass(frozen=True, slots=True)
class Bytes(Shape):
    """``[]byte``."""

    go: str = "[]uint8"

    def read(self, value: Any, at: Place) -> bytes:
        """The decoded bytes."""
        if type(value) is list:
            return bytes([_BYTE.read(0 if each is None else each, at) for each in value])
        if type(value) is not str:
            raise at.error("a string in base64", value, self)
        mistake = base64_mistake(value)
        if mistake is not None:
            words = f"illegal base64 data at input byte {mistake}"
            raise ShapeError(at.path, "a string in base64", "one that is not base64", words)
        return base64.b64decode(value)


@dataclass(frozen=True, slots=True)
class Moment(Shape):
    """metav1.Time: a time as RFC 3339 writes it."""

    go: str = "v1.Time"

    def read(self, value: Any, at: Place) -> str:
        """The text of the time, unchanged."""
        if type(value) is not str:
            raise at.error("a time (RFC 3339)", value, self)
        if not _is_time(value):
            go = f'parsing time "{value[:_SHOWN]}" as "2006-01-02T15:04:05Z07:00"'
            raise ShapeError(at.path, "a time (RFC 3339)", "a string that is none", go)
        return value


# As lax as Go's time.Parse: an hour may have one digit, a comma may stand before fractions of seconds.
_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?"
    r"(?:Z|[+-]([0-9]{2}):([0-9]{2}))"
)
_LIMITS: Final = (23, 59, 59, 24, 60)
"""The greatest hour, minute, second, and hour and minute of the offset that Go's time.Parse takes."""


def _is_time(text: str) -> bool:
    parts = _TIME.fullmatch(text)
    if parts is None:
        return False
    year, month, day, *rest = [int(part or 0) for part in parts.groups()]
    if any(value > limit for value, limit in zip(rest, _LIMITS, strict=True)):
        return False
    try:
        # The calendar repeats after 400 years, and Go knows a year 0.
        date(year % 400 + 400, month, day)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Items(Shape):
    """A list. An element ``null`` is the element's zero value; here, None becomes ``zero``."""

    element: Shape
    zero: Any = None

    def read(self, value: Any, at: Place) -> list[Any]:
        """The elements."""
        if type(value) is not list:
            raise at.error("an array", value, self)
        read, zero = self.element.read, self.zero
        return [zero if each is None else read(each, at.inside(index)) for index, each in enumerate(value)]


@dataclass(frozen=True, slots=True)
class Entries(Shape):
    """A map with keys of strings."""

    element: Shape
    zero: Any = None

    def read(self, value: Any, at: Place) -> dict[str, Any]:
        """The entries."""
        if not isinstance(value, dict):
            raise at.error("an object", value, self)
        read, zero = self.element.read, self.zero
        return {name: zero if each is None else read(each, at.inside(name)) for name, each in _pairs(value)}


@dataclass(frozen=True, slots=True)
class Struct(Shape):
    """An object with known members; ``go`` has its package in front, such as ``v1.Status``.

    ``folded``: names are known in any case of letters, as encoding/json has it by itself.
    """

    fields: Mapping[str, Shape] = field(default_factory=dict)
    folded: bool = False

    def read(self, value: Any, at: Place) -> dict[str, Any]:
        """The members that are known and not null."""
        if not isinstance(value, dict):
            raise at.error("an object", value, self)
        package, _, struct = self.go.rpartition(".")
        members: dict[str, Any] = {}
        for said, each in _pairs(value):
            name = self._name(said)
            shape = self.fields.get(name)
            if shape is None:
                continue
            if each is not None:
                place = Place(path=(*at.path, name), struct=struct if package else "", names=(*at.names, name))
                members[name] = _again(members.get(name), shape.read(each, place))
            elif isinstance(members.get(name), dict | list | bytes):
                del members[name]
        return members

    def _name(self, said: str) -> str:
        """The field that a member is."""
        if not self.folded or said in self.fields:
            return said
        return next((name for name in self.fields if name.casefold() == said.casefold()), said)


def _pairs(value: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return value.pairs if isinstance(value, Repeated) else value.items()


def _again(old: Any, new: Any) -> Any:
    """What the second of two members of the same name makes of the first."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return {**old, **{name: _again(old.get(name), each) for name, each in new.items()}}


STRING: Final = Text()
BOOL: Final = Flag()
STRINGS: Final = Items("[]string", STRING, "")
STRING_MAP: Final = Entries("map[string]string", STRING, "")
ANYTHING: Final = Anything()
TIME: Final = Moment()


def read(value: Any, shape: Shape) -> Any:
    """What the decoder makes of a decoded JSON value; None for ``null``.

    Args:
        value: of exactly the types that a JSON parser makes.
        shape: what it should be.

    Returns:
        A new value of known members only, without those that are null; bytes where the type is ``[]byte``.

    Raises:
        ShapeError: the first value, in the text's order, that is of the wrong type.
    """
    return None if value is None else shape.read(value, Place())
