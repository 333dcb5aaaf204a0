"""The common rules of all limits.

Each is greater than zero, unless 0 means never, and finite (a timer cannot be infinite). No limit allows more nesting
than the gateway's recursive functions support. A limit is one of four:

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
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple, dataclass_transform

MAX_PORT: Final = 65_535
"""The largest port of TCP."""

DEEPEST: Final = 256
"""The levels of nesting that all recursive functions of the gateway support: with up to three frames per level, this is
below Python's recursion limit of 1000."""

BODY_BYTES: Final = 20_000_000
"""The largest AdmissionReview unless ``--limit-body-bytes`` is given. 15.58 MB was measured for a legal object: an
UPDATE of a 1 MiB ConfigMap of ``<``, each sent as ``\\u003c`` (6 bytes), old and new object (2 x 6 x 1.05 MB), and a
250 kB annotation of the same (2 x 1.5 MB). A quarter on top."""

READABLE_VALUES: Final = 300_000
"""Values, and names of members, of a review whose large members can be read. One takes 0.03 to 0.17 us to parse: in the
worst case 50 ms, in one call that nothing can interrupt. The API server stores objects of at most 1.5 MB (etcd's
limit): at 20 bytes for each name with its value, 150,000 in the object of an UPDATE and as many in the old one."""

MEMORY_BUDGET: Final = 1_073_741_824
"""Bytes of memory that one gateway may use for requests, answers and caches, unless ``--memory-budget`` is given. With
``--processes`` each process has an equal part of it, and of the limits that are shares of it, also of those with flags.
All other limits are of each process.
1 GiB: the bodies of a thousand reviews of 250 KB each take a quarter of it; their parsed objects and documents take at
most twice that."""

LARGEST_BODIES: Final = 8
"""How many of the largest AdmissionReviews the memory budget must hold. The smallest share that has to hold a whole
document is an eighth."""


class Limit(NamedTuple):
    """How one limit is set.

    ``help``: the help text of its flag; empty: there is no flag. ``budget_divisor``: unless the limit is given, it is
    the memory budget divided by this; 0: it does not depend on the budget. ``body_tenths``: the limit is so many tenths
    of the largest body, plus ``body_extra`` bytes; 0: it does not depend on the body.
    """

    default: float
    help: str = ""
    may_be_zero: bool = False
    budget_divisor: int = 0
    body_tenths: int = 0
    body_extra: int = 0


def tunable(default: float, text: str, *, may_be_zero: bool = False) -> Any:
    """A limit that is a flag, with ``text`` as its help."""
    return Limit(default, help=text, may_be_zero=may_be_zero)


def budgeted(divisor: int, text: str = "") -> Any:
    """A limit in bytes: the memory budget divided by ``divisor``. With ``text`` as its help it is a flag as well."""
    return Limit(MEMORY_BUDGET // divisor, help=text, budget_divisor=divisor)


def of_body(tenths: int, extra: int = 0) -> Any:
    """A limit in bytes without a flag: so many tenths of the largest body, plus ``extra``."""
    return Limit(BODY_BYTES * tenths // 10 + extra, body_tenths=tenths, body_extra=extra)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Bounds:
    """A set of limits: a subclass names each, with its type, and with its default or one of the functions above.

    It is neither a dataclass nor a Struct: shell completion imports all limits, and either would add a tenth to its
    time.

    Args:
        given: the limits that differ from their defaults. A limit ``depth`` counts levels of JSON.

    Raises:
        ValueError: a limit is out of range: its name, its value, and what it must be.
    """

    limits: ClassVar[Mapping[str, Limit]] = {}
    """How each limit is set, by name."""

    def __init_subclass__(cls) -> None:
        values = ((name, getattr(cls, name)) for name in cls.__annotations__)
        cls.limits = {name: value if isinstance(value, Limit) else Limit(value) for name, value in values}

    def __init__(self, **given: float) -> None:
        unknown = given.keys() - self.limits.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no limit {', '.join(sorted(unknown))}")
        vars(self).update({name: given.get(name, limit.default) for name, limit in self.limits.items()})
        for name, limit in self.limits.items():
            _check(name, getattr(self, name), limit)
        self.check_together()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"limit {name} of {type(self).__name__} is set when it is made")

    def check_together(self) -> None:
        """Raise a ValueError, which names a limit, if limits contradict each other."""


def _check(name: str, value: float, limit: Limit) -> None:
    if not value > 0 and not (value == 0 and limit.may_be_zero):
        raise ValueError(f"limit {name} is {value}: it must be greater than zero")
    if not math.isfinite(value):
        raise ValueError(f"limit {name} is {value}: it must be finite")
    if name == "depth" and value > DEEPEST:
        raise ValueError(f"limit depth is {value}: it must be at most {DEEPEST}")


def check_budget(budget: int, body_bytes: int, processes: int = 1) -> None:
    """Reject a memory budget that is too small for the largest AdmissionReview. It is that of each process.

    Raises:
        ValueError: the budget, the smallest one allowed, and what to do.
    """
    if budget < LARGEST_BODIES * body_bytes:
        of_each = f" for each of {processes} processes" if processes > 1 else ""
        raise ValueError(
            f"the memory budget is {budget} bytes{of_each}: it must hold {LARGEST_BODIES} of the largest "
            f"AdmissionReviews, {LARGEST_BODIES} x {body_bytes} bytes; raise --memory-budget "
            "or lower --limit-body-bytes"
        )
