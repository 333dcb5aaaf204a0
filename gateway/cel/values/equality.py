"""``==`` and the order of values (cel-go's Equal and Compare).

Values of different kinds are not equal, without an error, but for: numbers of different kinds, which are compared as
numbers; and the Kubernetes types, which have an error for any other type. null equals only null.

Objects may be large and compared in a loop, which Kubernetes' cost model does not know of: so every step of a
comparison is reported to ``effort``.
"""

import math
from collections.abc import Callable
from typing import Any, Final

from gateway.cel.budget import LARGE, PER_STEP
from gateway.cel.values.containers import MISSING, Optional, find, is_map, items
from gateway.cel.values.durations import Duration
from gateway.cel.values.faults import Fault, no_such_overload
from gateway.cel.values.numbers import adapted, compare_numbers, is_number
from gateway.cel.values.reflection import Opaque
from gateway.cel.values.timestamps import Timestamp
from gateway.cel.values.types import Type

Effort = Callable[[int], None]
"""Takes the number of steps that were made; raises Aborted when they are too many."""


def equal(left: Any, right: Any, effort: Effort) -> bool:
    """Whether two values are equal; raises Fault where cel-go has an error."""
    if left is None or right is None:
        return left is None and right is None
    return _equal(left, right, effort)


def _equal(left: Any, right: Any, effort: Effort) -> bool:  # noqa: PLR0911 - one return for each kind
    kind = type(left)
    if kind is str or kind is bytes:
        return type(right) is kind and _texts_equal(left, right, effort)
    if kind is bool:
        return left is right
    if kind is list:
        return isinstance(right, list) and _lists_equal(left, right, effort)
    if is_number(left):
        return is_number(right) and _numbers_equal(adapted(left), adapted(right))
    if is_map(left):
        return is_map(right) and _maps_equal(left, right, effort)
    if isinstance(left, Opaque):
        return left.equals(right)
    if isinstance(left, Timestamp):
        return isinstance(right, Timestamp) and left.instant == right.instant
    if isinstance(left, Optional):
        return isinstance(right, Optional) and _optionals_equal(left, right, effort)
    if isinstance(left, Type):
        return isinstance(right, Type) and left.name == right.name
    return bool(type(left) is type(right) and left == right)


def _texts_equal(left: Any, right: Any, effort: Effort) -> bool:
    if len(left) != len(right):
        return False
    scan(left, effort)
    return bool(left == right)


def scan(text: Any, effort: Effort) -> None:
    """Count what it takes to read a long text: the same one may stand in a list a thousand times."""
    if len(text) > LARGE:
        effort(len(text) // PER_STEP)


def _numbers_equal(left: Any, right: Any) -> bool:
    if math.isnan(left) or math.isnan(right):
        return False
    return compare_numbers(left, right) == 0


_CONTAINER: Final = 2
"""Steps: what it takes to begin with a list or a map, however few elements it has."""


def _lists_equal(left: list[Any], right: list[Any], effort: Effort) -> bool:
    if len(left) != len(right):
        return False
    effort(_CONTAINER + len(left))
    # An error in an element (of the Kubernetes types) is not false, and cel-go stops only at false.
    for one, other in zip(left, right, strict=True):  # noqa: SIM110 - as a generator it would take longer
        if not _element_equal(one, other, effort):
            return False
    return True


def _maps_equal(left: Any, right: Any, effort: Effort) -> bool:
    if len(left) != len(right):
        return False
    effort(_CONTAINER + len(left))
    for key, value in items(left):
        other = find(right, key)
        if other is MISSING or not _element_equal(value, other, effort):
            return False
    return True


def _element_equal(left: Any, right: Any, effort: Effort) -> bool:
    if left is None or right is None:
        return left is right
    try:
        return _equal(left, right, effort)
    except Fault:
        return True


def _optionals_equal(left: Optional, right: Optional, effort: Effort) -> bool:
    if not left.present or not right.present:
        return left.present == right.present
    return _equal(left.value, right.value, effort)


def compare(left: Any, right: Any, effort: Effort) -> int:
    """-1, 0 or 1; raises Fault if the two have no order between them."""
    if is_number(left):
        if not is_number(right):
            if isinstance(left, float) and math.isnan(left):
                raise Fault("NaN values cannot be ordered")
            raise no_such_overload()
        if math.isnan(left) or math.isnan(right):
            raise Fault("NaN values cannot be ordered")
        return compare_numbers(adapted(left), adapted(right))
    if type(left) is not type(right):
        raise no_such_overload()
    if isinstance(left, Timestamp):
        left, right = left.instant, right.instant
    elif isinstance(left, str | bytes):
        scan(left if len(left) < len(right) else right, effort)
    if isinstance(left, str) and not (left.isascii() and right.isascii()):
        left, right = left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass")
    return int(left > right) - int(left < right)


def comparable(value: Any) -> bool:
    """Whether values of its kind have an order."""
    return isinstance(value, bool | int | float | str | bytes | Timestamp | Duration)


def contains(container: list[Any], item: Any, effort: Effort) -> bool:
    """Whether a list has an equal element; an error of a comparison is not equality (cel-go's Lister.Contains)."""
    for element in container:
        effort(1)
        try:
            if item is not None and _equal(item, adapted(element), effort):
                return True
        except Fault:
            continue
        if item is None and element is None:
            return True
    return False
