"""What all limits have in common.

Each is greater than zero, unless 0 means never, and finite (no timer can be set to infinity); none allows more nesting
than our recursive walks survive. A limit is one of four:

    ===============  ===============================================================================================
    made by          it is
    ===============  ===============================================================================================
    ``tunable``      a flag: what an operator tunes for the size or load of a cluster
    ``budgeted``     a share of ``--memory-budget``, unless it has a flag that is given
    ``of_body``      so many times the largest AdmissionReview, ``--limit-body-bytes``; no flag
    a plain default  a constant with its arithmetic; no flag
    ===============  ===============================================================================================

Tests set any of them.
"""

import math
from dataclasses import field, fields
from typing import Any, Final

DEEPEST: Final = 256
"""Levels that every recursive walk of ours survives: at up to three frames a level, below Python's own limit of
1000."""

BODY_BYTES: Final = 20_000_000
"""The largest AdmissionReview unless ``--limit-body-bytes`` says otherwise. 15.58 MB was seen for a legal object: an
UPDATE of a 1 MiB ConfigMap of ``<``, each sent as ``\\u003c`` (6 bytes), old and new object (2 x 6 x 1.05 MB), and a
250 kB annotation of the same (2 x 1.5 MB). A quarter on top."""

MEMORY_BUDGET: Final = 1_073_741_824
"""Bytes of memory that one process may fill with what it holds for others, unless ``--memory-budget`` says otherwise.
1 GiB: the bodies of a thousand reviews of 250 KB each take a quarter of it; parsed objects and documents of these,
twice that at the worst."""

LARGEST_BODIES: Final = 8
"""How many of the largest AdmissionReviews the memory budget must hold. The smallest share that has to hold a whole
document is an eighth."""

MAY_BE_ZERO: Final = "may be zero"
"""Of a field's metadata: 0 means never."""

HELP: Final = "help"
"""Of a field's metadata: it is a flag, and this is its help."""

BUDGET_DIVISOR: Final = "budget divisor"
"""Of a field's metadata: unless given, it is the memory budget divided by this."""

BODY_FACTOR: Final = "body factor"
"""Of a field's metadata: it is so many tenths of the largest body."""

BODY_EXTRA: Final = "body extra"
"""Of a field's metadata: and so many bytes more."""


def tunable(default: float, text: str, *, may_be_zero: bool = False) -> Any:
    """A limit that is a flag, with ``text`` as its help."""
    return field(default=default, metadata={HELP: text, MAY_BE_ZERO: may_be_zero})


def budgeted(divisor: int, text: str = "") -> Any:
    """A limit in bytes: the memory budget divided by ``divisor``. With ``text`` as its help it is a flag as well."""
    metadata = {BUDGET_DIVISOR: divisor} | ({HELP: text} if text else {})
    return field(default=MEMORY_BUDGET // divisor, metadata=metadata)


def of_body(tenths: int, extra: int = 0) -> Any:
    """A limit in bytes that is no flag but follows the largest body: so many tenths of it, and ``extra``."""
    return field(default=BODY_BYTES * tenths // 10 + extra, metadata={BODY_FACTOR: tenths, BODY_EXTRA: extra})


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


def check_budget(budget: int, body_bytes: int) -> None:
    """Refuse a memory budget that is too small for the largest AdmissionReview.

    Raises:
        ValueError: the budget, what it must hold, what to do.
    """
    if budget < LARGEST_BODIES * body_bytes:
        raise ValueError(
            f"the memory budget is {budget} bytes: it must hold {LARGEST_BODIES} of the largest AdmissionReviews, "
            f"{LARGEST_BODIES} x {body_bytes} bytes; raise --memory-budget or lower --limit-body-bytes"
        )
