"""What all limits have in common: each is greater than zero and finite (no timer can be set to infinity), and none
allows more nesting than we can walk.
"""

import math
from dataclasses import fields
from typing import Any, Final

DEEPEST: Final = 256
"""Levels that every recursive walk of ours survives: at up to three frames a level, below Python's own limit of
1000."""


def check_bounds(limits: Any) -> None:
    """Refuse limits that cannot work.

    Args:
        limits: a dataclass instance whose fields are numbers; a field ``depth`` counts levels of JSON.

    Raises:
        ValueError: which limit, what it is, what it must be.
    """
    for each in fields(limits):
        value = getattr(limits, each.name)
        if not value > 0:
            raise ValueError(f"limit {each.name} is {value}: it must be greater than zero")
        if not math.isfinite(value):
            raise ValueError(f"limit {each.name} is {value}: it must be finite")
        if each.name == "depth" and value > DEEPEST:
            raise ValueError(f"limit depth is {value}: it must be at most {DEEPEST}")
