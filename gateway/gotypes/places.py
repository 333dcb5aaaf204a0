"""Where a value stands, in Kubernetes' notation and in that of Go's decoder; and what is wrong with one."""

from typing import Any, Final

from msgspec import Struct

from gateway.gotypes.values import Fraction, Repeated

Path = tuple[str, ...]
"""Where a value stands: names of fields, and in brackets the keys of maps and indexes of lists."""


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


class DecodeError(ValueError):
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


class Place(Struct, frozen=True, kw_only=True):
    """Where a value stands, for errors: its path, the Go struct around it, and the names of the fields on the way."""

    path: Path = ()
    struct: str = ""
    names: tuple[str, ...] = ()

    def inside(self, key: str | int) -> "Place":
        """An element of a list or a value of a map: Go's errors do not name it."""
        shown = key if isinstance(key, int) or len(key) <= _SHOWN else f"{key[:_SHOWN]}…"
        return Place(path=(*self.path, f"[{shown}]"), struct=self.struct, names=self.names)

    def error(self, expected: str, value: Any, go: str, *, literal: bool = False) -> DecodeError:
        """``value`` does not fit the type that Go calls so; ``literal`` if Go's error repeats the number."""
        number = str(value)[:_SHOWN] if literal else ""
        found = f"{_KINDS[type(value)]} {number}" if literal else _KINDS[type(value)]
        into = f"struct field {self.struct}.{'.'.join(self.names)}" if self.names else "value"
        prose = f"the number {number}" if literal else _WITH_ARTICLE[type(value)]
        return DecodeError(self.path, expected, prose, f"json: cannot unmarshal {found} into Go {into} of type {go}")
