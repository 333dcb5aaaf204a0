"""Counts the work of comparing objects: a difference, and which policy changed what.

A worker's answer of 8 KB can make two objects whose comparison takes a minute. So each comparison has a number of
steps, of about half a microsecond, and takes them before it does the work. What it cannot afford it does not look into:
a value is replaced whole, an array is compared by position, a field's parts have no owners of their own. The result is
right in any case, only less precise.

A container may use fifteen sixteenths of what is left when its turn comes; a member of the whole object three quarters.
So whatever one member costs, those after it are still compared: a label that changed beside a million changed lines is
one operation.
"""

from typing import Final

STEPS: Final = 100_000
"""Steps of one comparison, some 50 ms: the event loop must not be held longer. An object of 1.5 MB, the most that etcd
stores, with 100,000 members, of which 10,000 changed, needs some 80,000."""

_KEPT: Final = 16
"""What a container leaves for those after it, as a divisor. At ten levels, half of all steps can still be used."""

_KEPT_BY_MEMBERS: Final = 4
"""The same for a member of the object itself, because ``metadata`` often comes after ``data``."""


def kept(level: int) -> int:
    """What a container at this level leaves for those after it, as a divisor; nothing comes after the object, level
    0.
    """
    return _KEPT if level > 1 else _KEPT_BY_MEMBERS if level else STEPS


class OutOfStepsError(Exception):
    """The steps that this part of the work may take have been taken."""


class Steps:
    """The steps of one comparison.

    Args:
        left: how many.
    """

    __slots__ = ("_floor", "exhausted", "left")

    def __init__(self, left: int = STEPS) -> None:
        self.left = left
        self.exhausted = False
        """A part of the work had too few steps."""
        self._floor = 0

    def take(self, steps: int) -> None:
        """Take steps before the work is done. Raises OutOfStepsError if there are too few."""
        if self.left - steps < self._floor:
            self.exhausted = True
            raise OutOfStepsError
        self.left -= steps

    def begin(self, divisor: int) -> int:
        """A part of the work begins, and leaves one ``divisor``-th of what is left. ``end`` takes the result."""
        floor = self._floor
        self._floor = floor + (self.left - floor) // divisor
        return floor

    def end(self, floor: int) -> None:
        """That part has ended."""
        self._floor = floor
