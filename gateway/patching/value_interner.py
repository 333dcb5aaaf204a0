"""Numbers for JSON values: equal values have the same number, whatever their size.

Aligning two arrays compares each element of one with many of the other, and again for the arrays inside. With numbers,
each container is visited once, and all later comparisons compare two integers.
"""

from typing import Any

from gateway.patching.equality import Value
from gateway.patching.steps import Steps

_CONTAINER = 3
"""Steps of a container, besides one for each of its members or elements."""

_TRUE, _FALSE = object(), object()


class ValueInterner:
    """The numbers of all values seen so far. The containers must outlive it: they are identified by their ``id``.

    ``steps`` bound the work: ``number`` raises OutOfStepsError.
    """

    __slots__ = ("_by_content", "_by_id", "_contents", "_steps")

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._by_content: dict[Any, int] = {}
        self._by_id: dict[int, int] = {}
        self._contents: list[Any] = []

    def number(self, value: Value) -> int:
        """The number that this value and all values equal to it have (``equality.equal``)."""
        kind = type(value)
        content: Any
        if kind is dict or kind is list:
            known = self._by_id.get(id(value))
            if known is not None:
                return known
            self._steps.take(_CONTAINER + len(value))
            if kind is dict:
                content = frozenset([(name, self.number(child)) for name, child in value.items()])
            else:
                content = tuple([self.number(child) for child in value])
            number = self._by_id[id(value)] = self._by_content.setdefault(content, len(self._contents))
        else:
            # A string never equals a number, a frozenset or a tuple. For Python 1 equals 1.0, as in JSON, and True.
            content = value if kind is not bool else _TRUE if value else _FALSE
            number = self._by_content.setdefault(content, len(self._contents))
        if number == len(self._contents):
            self._contents.append(content)
        return number

    def known_equal(self, one: Value, other: Value) -> bool:
        """Whether two containers have been numbered, and are equal."""
        number = self._by_id.get(id(one))
        return number is not None and number == self._by_id.get(id(other))

    def width(self, number: int) -> int:
        """How many members or elements a numbered container has; 0 for anything else."""
        content = self._contents[number]
        return len(content) if type(content) is frozenset or type(content) is tuple else 0

    def changed(self, old: int, new: int) -> int | None:
        """How many members or elements differ between two containers of the same kind; None if they are no such
        thing.
        """
        one, other = self._contents[old], self._contents[new]
        if type(one) is frozenset and type(other) is frozenset:
            common = len(one & other)
        elif type(one) is tuple and type(other) is tuple:
            common = sum(map(int.__eq__, one, other))
        else:
            return None
        return max(len(one), len(other)) - common
