"""Go types as JSON sees them, and what kube-apiserver's decoder makes of a JSON value that should be of one.

The decoder is Go's (sigs.k8s.io/json, case-sensitive; where a type is ``folded``, encoding/json). Its rules, which are
laxer than a schema's:

* A member that the type does not know is ignored, and so is every member whose name differs in case.
* ``null`` is accepted everywhere, and has no effect: the field keeps its zero value; so does an element of a list or a
  map ("The JSON null value ... Otherwise, the JSON null value has no effect").
* Any other value of the wrong JSON type is an error. A number is an integer only if it is written as one (not 1.0, not
  1e3) and fits.
* ``[]byte`` is a string in base64, in which line breaks are ignored, or an array of small integers.

A type is a value, built from the classes below; a struct is a table of its fields. There are two ways in: ``read`` is
for what another program answers, and stops at the first error; ``gateway.policies.decoding.strict`` is for manifests,
strict, and reports all of them, each at its line.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from gateway.gotypes.base64_text import base64_error
from gateway.gotypes.places import DecodeError, Place
from gateway.gotypes.timestamps import timestamp_error
from gateway.gotypes.values import again, pairs


class GoType:
    """What all types have: ``go`` is the Go type's name, as its errors write it."""

    __slots__ = ()

    go: str

    @property
    def zero(self) -> Any:
        """What an element of a list or a map is that is ``null``."""
        return None

    def read(self, value: Any, at: Place) -> Any:
        """What the decoder makes of ``value``, which is not None. Raises DecodeError."""
        raise NotImplementedError


class Text(GoType, msgspec.Struct, frozen=True):
    """A string, or a type made of one."""

    go: str = "string"

    @property
    def zero(self) -> str:
        """``""``"""
        return ""

    def read(self, value: Any, at: Place) -> str:
        """The string, with what is no Unicode character replaced, as Go replaces it."""
        if type(value) is not str:
            raise at.error("a string", value, self.go)
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Flag(GoType, msgspec.Struct, frozen=True):
    """A boolean."""

    go: str = "bool"

    def read(self, value: Any, at: Place) -> bool:
        """The boolean."""
        if type(value) is not bool:
            raise at.error("a boolean", value, self.go)
        return value


class Integer(GoType, msgspec.Struct, frozen=True):
    """An integer of so many bits, signed unless its type says otherwise."""

    go: str = "int64"
    low: int = -(2**63)
    high: int = 2**63 - 1

    def read(self, value: Any, at: Place) -> int:
        """The integer."""
        if type(value) is int and self.low <= value <= self.high:
            return value
        raise at.error("an integer", value, self.go, literal=type(value) is not bool and isinstance(value, int | float))


class Number(GoType, msgspec.Struct, frozen=True):
    """A float64."""

    go: str = "float64"

    def read(self, value: Any, at: Place) -> float:
        """The number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise at.error("a number", value, self.go)
        return value


INT32: Final = Integer("int32", -(2**31), 2**31 - 1)
INT64: Final = Integer()
_BYTE: Final = Integer("uint8", 0, 255)


class Anything(GoType, msgspec.Struct, frozen=True):
    """A value of any type (runtime.RawExtension, FieldsV1)."""

    go: str = "runtime.RawExtension"

    def read(self, value: Any, at: Place) -> Any:  # noqa: ARG002 - all types are read alike
        """The value itself."""
        return value


class Bytes(GoType, msgspec.Struct, frozen=True):
    """``[]byte``."""

    go: str = "[]uint8"

    def read(self, value: Any, at: Place) -> bytes:
        """The decoded bytes."""
        if type(value) is list:
            return bytes([_BYTE.read(0 if each is None else each, at.inside(at_)) for at_, each in enumerate(value)])
        if type(value) is not str:
            raise at.error("a string in base64", value, self.go)
        error = base64_error(value)
        if error is not None:
            words = f"illegal base64 data at input byte {error}"
            raise DecodeError(at.path, "a string in base64", "one that is not base64", words)
        return base64.b64decode(value)


class Time(GoType, msgspec.Struct, frozen=True):
    """metav1.Time: a time as RFC 3339 writes it. It decodes itself, from a string."""

    go: str = "string"

    def read(self, value: Any, at: Place) -> str:
        """The text of the time, unchanged."""
        if type(value) is not str:
            raise at.error("a time (RFC 3339)", value, self.go)
        error = timestamp_error(value)
        if error is not None:
            raise DecodeError(at.path, "a time (RFC 3339)", "a string that is none", error)
        return value


class Deferred(Anything, frozen=True):
    """A struct that is kept as it is, to be decoded by itself."""

    @property
    def zero(self) -> dict[str, Any]:
        """``{}``"""
        return {}


class ListOf(GoType, msgspec.Struct, frozen=True):
    """A slice; ``go`` if it is a type with a name."""

    item: GoType
    go: str = ""

    def __post_init__(self) -> None:
        """Name it after its elements, unless it has a name."""
        force_setattr(self, "go", self.go or f"[]{self.item.go}")

    def read(self, value: Any, at: Place) -> list[Any]:
        """The elements."""
        if type(value) is not list:
            raise at.error("an array", value, self.go)
        read, zero = self.item.read, self.item.zero
        return [zero if each is None else read(each, at.inside(index)) for index, each in enumerate(value)]


class MapOf(GoType, msgspec.Struct, frozen=True):
    """A map of strings to this."""

    item: GoType
    go: str = ""

    def __post_init__(self) -> None:
        """Name it after its values."""
        force_setattr(self, "go", f"map[string]{self.item.go}")

    def read(self, value: Any, at: Place) -> dict[str, Any]:
        """The entries."""
        if not isinstance(value, dict):
            raise at.error("an object", value, self.go)
        read, zero = self.item.read, self.item.zero
        return {name: zero if each is None else read(each, at.inside(name)) for name, each in pairs(value)}


class Struct(GoType, msgspec.Struct, frozen=True):
    """An object with known members; ``go`` has its package in front, such as ``v1.Status``.

    ``embedded`` are the fields of a struct inside it, which is named ``inner``. ``folded``: names are known in any case
    of letters, as encoding/json has it by itself.
    """

    go: str
    fields: Mapping[str, GoType] = msgspec.field(default_factory=dict)
    inner: str = ""
    embedded: Mapping[str, GoType] = msgspec.field(default_factory=dict)
    folded: bool = False

    @property
    def zero(self) -> dict[str, Any]:
        """``{}``"""
        return {}

    def member(self, name: str, at: Place) -> tuple[GoType, Place] | None:
        """The type of a member, and its place; None if there is no such field. (A type without a name has none.)"""
        kind = self.fields.get(name) or self.embedded.get(name)
        if kind is None:
            return None
        package, _, struct = self.go.rpartition(".")
        inner = (self.inner,) if name in self.embedded else ()
        return kind, Place(path=(*at.path, name), struct=package and struct, names=(*at.names, *inner, name))

    def read(self, value: Any, at: Place) -> dict[str, Any]:
        """The members that are known and not null."""
        if not isinstance(value, dict):
            raise at.error("an object", value, self.go)
        members: dict[str, Any] = {}
        for key, each in pairs(value):
            name = self._name(key) if self.folded else key
            known = self.member(name, at)
            if known is None:
                continue
            if each is not None:
                kind, place = known
                members[name] = again(members.get(name), kind.read(each, place))
            elif isinstance(members.get(name), dict | list | bytes):
                del members[name]
        return members

    def _name(self, key: str) -> str:
        """The field that a member is."""
        return next((name for name in self.fields if name.casefold() == key.casefold()), key)


STRING: Final = Text()
BOOL: Final = Flag()
STRINGS: Final = ListOf(STRING)
STRING_MAP: Final = MapOf(STRING)
ANYTHING: Final = Anything()
TIME: Final = Time()


def read(value: Any, kind: GoType) -> Any:
    """What the decoder makes of a decoded JSON value; None for ``null``.

    Args:
        value: of exactly the types that a JSON parser makes.
        kind: what it should be.

    Returns:
        A new value of known members only, without those that are null; bytes where the type is ``[]byte``.

    Raises:
        DecodeError: the first value, in the text's order, that is of the wrong type.
    """
    return None if value is None else kind.read(value, Place())
