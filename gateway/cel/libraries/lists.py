"""Lists: Kubernetes' own library, cel-go's extension (version 3), and sets."""

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final

from gateway.cel.libraries.operators import LARGEST_LIST, add, too_large
from gateway.cel.libraries.overloads import Library, Overload, function, member
from gateway.cel.values.durations import Duration
from gateway.cel.values.equality import Effort, comparable, compare, contains, equal
from gateway.cel.values.faults import Fault, no_such_overload
from gateway.cel.values.numbers import Uint, adapted
from gateway.cel.values.reflection import type_of

_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
_IDENTITIES: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
"""How the extension's overloads are called that Kubernetes' own are not."""


# -------------------------------------------------------------------------------------- Kubernetes' library
def _is_sorted(values: list[Any], effort: Effort) -> bool:
    """A pair that has no order (an error) does not count against it."""
    effort(len(values))
    for value in values:
        if not comparable(value):
            raise no_such_overload()
    return all(not _after(one, next_one, effort) for one, next_one in pairwise(values))


def _after(one: Any, other: Any, effort: Effort) -> bool:
    try:
        return compare(one, other, effort) > 0
    except Fault:
        return False


def _sum(zero: Any) -> Callable[[list[Any], Effort], Any]:
    def total(values: list[Any], effort: Effort) -> Any:
        effort(len(values))
        result = zero
        for value in values:
            if isinstance(value, bool) or value is None:
                raise no_such_overload()
            try:
                result = add(result, adapted(value))
            except Fault as error:
                # cel-go adds the next element to the error, which is another error.
                raise error if error.message != "no such overload: _+_" else no_such_overload() from None
        return result

    return total


def _extreme(name: str, preferred: int) -> Callable[[list[Any], Effort], Any]:
    """``min`` and ``max``: the first of equal ones; pairs without an order change nothing."""

    def pick(values: list[Any], effort: Effort) -> Any:
        effort(len(values))
        if not values:
            raise Fault(f"{name} called on empty list")
        for value in values:
            if not comparable(value):
                raise no_such_overload()
        result = adapted(values[0])
        for value in values[1:]:
            if _after(value, result, effort) if preferred > 0 else _after(result, value, effort):
                result = adapted(value)
        return result

    return pick


def _index_of(values: list[Any], item: Any, effort: Effort) -> int:
    return next((index for index, value in enumerate(values) if _same(value, item, effort)), -1)


def _last_index_of(values: list[Any], item: Any, effort: Effort) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if _same(values[index], item, effort)), -1)


def _same(value: Any, item: Any, effort: Effort) -> bool:
    """Equal, and no error."""
    effort(1)
    try:
        return equal(value, item, effort)
    except Fault:
        return False


# ------------------------------------------------------------------------------------------ the extension
def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    wrong = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise Fault(f"{wrong}, negative indexes not supported")
    if start > end:
        raise Fault(f"{wrong}, start index must be less than or equal to end index")
    if len(values) < end:
        raise Fault(f"{wrong}, list is length {len(values)}")
    return values[start:end]


def _flatten(values: Any, depth: Any = 1, effort: Effort | None = None) -> list[Any]:
    if not isinstance(values, list) or type(depth) is not int:
        arguments = "" if depth == 1 else type_of(depth).name
        raise Fault(f"no such overload: {type_of(values).name}.flatten({arguments})")
    if depth < 0:
        raise Fault("level must be non-negative")
    flat: list[Any] = []
    for value in values:
        if isinstance(value, list) and depth > 0:
            flat.extend(_flatten(value, depth - 1, effort))
        else:
            flat.append(value)
        too_large(len(flat), LARGEST_LIST)
    return flat


def _sort(values: list[Any], effort: Effort) -> list[Any]:
    return _sort_by(values, values, effort)


def _sort_by(values: Any, keys: Any, effort: Effort) -> list[Any]:
    if not values:
        return list(values)
    effort(len(values) * max(len(values).bit_length(), 1))
    if not comparable(keys[0]):
        raise Fault("list elements must be comparable")
    kind = type_of(adapted(keys[0]))
    if len(keys) > 1 and any(type_of(adapted(key)) is not kind for key in keys):
        raise Fault("list elements must have the same type")
    pairs = sorted(zip(keys, values, strict=True), key=_by_key(effort))
    return [value for _, value in pairs]


def _by_key(effort: Effort) -> Callable[[tuple[Any, Any]], Any]:
    """The order of two keys; those that have none stay where they are."""

    def order(one: tuple[Any, Any], other: tuple[Any, Any]) -> int:
        try:
            return compare(one[0], other[0], effort)
        except Fault:
            return 0

    return cmp_to_key(order)


def _sorted_list(values: Any, effort: Effort) -> list[Any]:
    if not isinstance(values, list):
        raise Fault("no such overload: sort")
    return _sort(values, effort)


def _sorted_by(values: Any, keys: Any, effort: Effort) -> list[Any]:
    if not isinstance(values, list) or not isinstance(keys, list):
        raise Fault("no such overload: @sortByAssociatedKeys")
    return _sort_by(values, keys, effort)


def _range(count: int) -> list[int]:
    too_large(count, LARGEST_LIST)
    return list(range(count))


def _distinct(values: list[Any], effort: Effort) -> list[Any]:
    unique: list[Any] = []
    for value in values:
        if not any(_same(value, other, effort) for other in unique):
            unique.append(value)
    return unique


# --------------------------------------------------------------------------------------------------- sets
def _sets_contain(values: list[Any], others: list[Any], effort: Effort) -> bool:
    return all(contains(values, adapted(other), effort) for other in others)


def _sets_equal(values: list[Any], others: list[Any], effort: Effort) -> bool:
    return _sets_contain(values, others, effort) and _sets_contain(others, values, effort)


def _sets_intersect(values: list[Any], others: list[Any], effort: Effort) -> bool:
    return any(contains(others, adapted(value), effort) for value in values)


def _templated(kind: str) -> tuple[Overload, ...]:
    """The overloads of Kubernetes' library for one kind of element."""
    elements = f"list({kind})"
    return (
        member(f"list_{kind}_is_sorted_bool", f"{elements}.isSorted() -> bool", _is_sorted, effortful=True),
        member(f"list_{kind}_max_{kind}", f"{elements}.max() -> {kind}", _extreme("max", 1), effortful=True),
        member(f"list_{kind}_min_{kind}", f"{elements}.min() -> {kind}", _extreme("min", -1), effortful=True),
    )


def _sorting(kind: str) -> tuple[Overload, ...]:
    """The overloads of the extension for one kind of element."""
    identity, elements = _IDENTITIES.get(kind, kind), f"list({kind})"
    return (
        member(f"list_{identity}_sort", f"{elements}.sort() -> {elements}"),
        member(f"list_{identity}_sortByAssociatedKeys", f"list(T).@sortByAssociatedKeys({elements}) -> list(T)"),
    )


LISTS: Final = Library(
    overloads=(
        *(overload for kind in _COMPARABLE for overload in _templated(kind)),
        *(
            member(f"list_{kind}_sum_{kind}", f"list({kind}).sum() -> {kind}", _sum(zero), effortful=True)
            for kind, zero in _SUMMABLE.items()
        ),
        member("list_a_index_of_int", "list(A).indexOf(A) -> int", _index_of, effortful=True),
        member("list_a_last_index_of_int", "list(A).lastIndexOf(A) -> int", _last_index_of, effortful=True),
    ),
)

EXTENDED_LISTS: Final = Library(
    overloads=(
        *(overload for kind in _COMPARABLE for overload in _sorting(kind)),
        member("list_slice", "list(T).slice(int, int) -> list(T)", _slice),
        member("list_flatten", "list(list(T)).flatten() -> list(T)", _flatten),
        member("list_flatten_int", "list(dyn).flatten(int) -> list(dyn)", _flatten),
        function("lists_range", "lists.range(int) -> list(int)", _range),
        member("list_reverse", "list(T).reverse() -> list(T)", lambda values: values[::-1]),
        member("list_distinct", "list(T).distinct() -> list(T)", _distinct, effortful=True),
    ),
    singletons={"sort": _sorted_list, "@sortByAssociatedKeys": _sorted_by},
    effortful=frozenset({"sort", "@sortByAssociatedKeys"}),
    unguarded=frozenset({"flatten"}),
)

SETS: Final = Library(
    overloads=(
        function("list_sets_contains_list", "sets.contains(list(T), list(T)) -> bool", _sets_contain, effortful=True),
        function("list_sets_equivalent_list", "sets.equivalent(list(T), list(T)) -> bool", _sets_equal, effortful=True),
        function(
            "list_sets_intersects_list", "sets.intersects(list(T), list(T)) -> bool", _sets_intersect, effortful=True
        ),
    ),
)
