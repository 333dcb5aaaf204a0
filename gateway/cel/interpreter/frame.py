"""One evaluation: the values of variables by slot, and what the evaluation has cost so far.

``cost`` is Kubernetes' own counting and ``effort`` ours: see ``budget``. Parts of a program that cost a constant add to
``cost`` directly, and the next ``charge`` or ``settle`` finds that it is too much.
"""

from collections.abc import Callable
from typing import Any

from gateway.cel.budget import LARGE, LARGEST_COST, LARGEST_EFFORT, PER_STEP, TOO_EXPENSIVE, TOO_LONG
from gateway.cel.values.faults import Aborted


class Frame:
    """``slots`` hold the variables of the environment and those of comprehensions; the planner numbers them."""

    __slots__ = ("cost", "effort", "limit", "most_effort", "slots")

    def __init__(self, slots: list[Any], limit: int = LARGEST_COST, most_effort: int = LARGEST_EFFORT) -> None:
        self.slots = slots
        self.limit = limit
        self.most_effort = most_effort
        self.cost = 0
        self.effort = 0

    def charge(self, cost: int) -> None:
        """Add to the cost; raises Aborted when it is too much."""
        self.cost += cost
        if self.cost > self.limit:
            raise Aborted(TOO_EXPENSIVE)

    def settle(self) -> None:
        """Raise Aborted if the cost is too much by now."""
        if self.cost > self.limit:
            raise Aborted(TOO_EXPENSIVE)

    def strive(self, steps: int) -> None:
        """Add to the effort; raises Aborted when it is too much."""
        self.effort += steps
        if self.effort > self.most_effort:
            raise Aborted(TOO_LONG)

    def heed(self, value: Any) -> None:
        """Add to the effort what it takes to copy or scan a large string or list."""
        if isinstance(value, str | bytes | list) and len(value) > LARGE:
            self.strive(len(value) // PER_STEP)


Run = Callable[[Frame], Any]
"""A part of a program: its value; raises Fault, Unanswered, Aborted."""
