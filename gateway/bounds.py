"""What all limits have in common: each is greater than zero, unless 0 means never, and finite (no timer can be set to
infinity), and none allows more nesting than we can walk.
"""

import math
from dataclasses import fields
from typing import Any, Final

DEEPEST: Final = 256
"""Levels that every recursive walk of ours survives: at up to three frames a level, below Python's own limit of
1000."""


MAY_BE_ZERO: Final = "may be zero"
"""Of a field's metadata: 0 means never."""


def check_bounds(limits: Any) -> None:
    """Refuse limits that cannot work.

    Args:
        limits: a dataclass instance whose fields are numbers; a field ``depth`` counts levels of JSON.

    Raises:
        ValueError: which limit, what it is, what it must be.
    """
    for each in fields(limits):
        value = getattr(limits, each.name)
        if not value > 0 and not (value == 0 and each.metadata.get(MAY_BE_ZERO)):
            raise ValueError(f"limit {each.name} is {value}: it must be greater than zero")
        if not math.isfinite(value):
            raise ValueError(f"limit {each.name} is {value}: it must be finite")
        if each.name == "depth" and value > DEEPEST:
            raise ValueError(f"limit depth is {value}: it must be at most {DEEPEST}")
