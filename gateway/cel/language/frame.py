"""Where one evaluation keeps what it knows: the meter, and the values of variables by number."""

from collections.abc import Callable
from typing import Any

from gateway.cel.budget import Meter


class Frame(Meter):
    """``slots`` hold the variables of the environment and those of folds; which is which was settled by the plan."""

    __slots__ = ("slots",)

    def __init__(self, slots: list[Any]) -> None:
        super().__init__()
        self.slots = slots


Run = Callable[[Frame], Any]
"""A part of an expression, ready to be worked out: its value; raises Fault, Unanswered, Aborted."""
