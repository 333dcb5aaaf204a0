"""Lists, maps and optionals."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gateway.cel.values.faults import Aborted
from gateway.cel.values.numbers import Uint, adapted, lossless

MISSING: Final = object()
"""There is no such key."""


class Optional(msgspec.Struct, frozen=True):
    """``optional.of(value)``; without a value, ``optional.none()``. (null is a value.)"""

    value: Any = MISSING

    @property
    def present(self) -> bool:
        """Whether there is a value."""
        return self.value is not MISSING


NONE: Final = Optional()


class Keys:
    """Values that are looked up by their value: the keys of a map, the elements of a constant list.

    1, 1u and 1.0 are kept apart; but where 1 is not there, 1u will do, and for a double both (cel-go's
    refValMapAccessor.Find). true is another than 1, and NaN is never found.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: Any) -> bool:
        return self.find(key) is not MISSING

    def add(self, key: Any, value: Any = True) -> None:  # noqa: FBT002 - what stands for a key without a value
        """Put in, or replace."""
        self._values[_exactly(key)] = (key, value)

    def remove(self, key: Any) -> None:
        """Take out exactly this key."""
        self._values.pop(_exactly(key), None)

    def find(self, key: Any) -> Any:
        """The value, or MISSING."""
        for candidate in _candidates(key):
            entry = self._values.get(candidate)
            if entry is not None:
                return entry[1]
        return MISSING

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Keys and values in the order in which they were put."""
        return iter(self._values.values())


class Map(Keys):
    """A map whose keys are not all strings."""

    __slots__ = ()


def _exactly(key: Any) -> Any:
    """What makes a key the same: its kind and its value."""
    kind = type(key)
    if kind is bytes:
        # cel-go cannot have them as keys, and gives up altogether.
        raise Aborted("internal error: runtime error: hash of unhashable type types.Bytes")
    if kind is float and key != key:  # noqa: PLR0124 - only NaN is not itself
        return object()
    return (kind, key) if kind in _PLAIN else (kind, id(key))


_PLAIN: Final = frozenset({str, bool, int, Uint, float})


def _candidates(key: Any) -> Iterator[Any]:
    """The keys under which a value may be found."""
    yield _exactly(key)
    kind = type(key)
    if kind is int:
        yield Uint, key
    elif kind is Uint:
        yield int, key
    elif kind is float and (whole := lossless(key)) is not None:
        yield int, whole
        yield Uint, whole


def is_map(value: Any) -> bool:
    """Whether a value is a map."""
    return isinstance(value, dict | Map)


def find(container: Any, key: Any) -> Any:
    """The value of a key in a map, or MISSING."""
    if isinstance(container, Map):
        return container.find(key)
    return adapted(container.get(key, MISSING)) if type(key) is str else MISSING


def items(container: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and values of a map."""
    if isinstance(container, Map):
        return container.items()
    return ((key, adapted(value)) for key, value in container.items())


def made_of(pairs: list[tuple[Any, Any]]) -> Any:
    """A map of these entries, later ones first; a dict if all keys are strings."""
    if all(type(key) is str for key, _ in pairs):
        return dict(pairs)
    made = Map()
    for key, value in pairs:
        made.add(key, value)
    return made
