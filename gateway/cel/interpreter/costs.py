"""What a call costs, in Kubernetes' counting.

First by overload (cel-go's extensions), then by function (k8s.io/apiserver/pkg/cel/library/cost.go), then by overload
again (cel-go's runtimecost.go); all else is 1. An overload counts only if the checker found exactly one:
``dyn(s).startsWith(x)`` has one, ``dyn(a) + dyn(b)`` has many and costs 1.

Sizes are of strings (code points), bytes, lists, maps, addresses; everything else has size 1. All of them are known
before the call, but for those in ``_BY_RESULT``.
"""

from collections.abc import Callable
from math import ceil
from typing import Any, Final

from gateway.cel.libraries.addresses import CIDR, IP
from gateway.cel.libraries.named_formats import Format
from gateway.cel.values.containers import Map, Optional, is_map, items
from gateway.cel.values.display import go_type_name
from gateway.cel.values.equality import Effort, scan
from gateway.cel.values.faults import Aborted
from gateway.cel.values.reflection import Opaque

_TRAVERSAL: Final = 0.1
"""common.StringTraversalCostFactor."""

_PATTERN: Final = 0.25
"""common.RegexStringLengthCostFactor."""

LIST: Final = 10
MAP: Final = 30
MESSAGE: Final = 40
"""Making one (common.*CreateBaseCost)."""

_CHECK: Final = 350_000
""""This cost is set to allow for only two authorization checks per expression"."""

_REQUIREMENT: Final = LIST + MESSAGE
_REQUIREMENTS_PER_CHARACTER: Final = 0.5

Cost = Callable[..., int]
"""Arguments, target first, to cost; of ``_BY_RESULT`` the result alone."""


def size(value: Any) -> int:
    """How large a value is."""
    if isinstance(value, str | bytes | list | dict | Map | IP | CIDR):
        return len(value)
    return 1


def _unwrapped(value: Any) -> int:
    """cel-go looks into optionals; Kubernetes does not."""
    if isinstance(value, Optional) and value.present:
        return _unwrapped(value.value)
    return size(value)


def _traversal(value: Any) -> int:
    return ceil(size(value) * _TRAVERSAL)


def _first(*arguments: Any) -> int:
    return _traversal(arguments[0])


def _twice(*arguments: Any) -> int:
    return ceil(size(arguments[0]) * 2 * _TRAVERSAL)


def _both(left: Any, right: Any) -> int:
    return ceil((size(left) + size(right)) * _TRAVERSAL)


def difference(left: Any, right: Any) -> int:
    """``!=``: the smaller of two sizes."""
    return ceil(min(_unwrapped(left), _unwrapped(right)) * _TRAVERSAL)


def equality(left: Any, right: Any) -> int:
    """``==``: as ``!=``, but 1 for the Kubernetes types."""
    return 1 if isinstance(left, Opaque) else difference(left, right)


def _product(left: Any, right: Any) -> int:
    return _traversal(left) * _traversal(right)


def _regex(*arguments: Any) -> int:
    return ceil((1.0 + size(arguments[0])) * _TRAVERSAL) * ceil(size(arguments[1]) * _PATTERN)


def _validate(named: Any, text: Any) -> int:
    pattern = named.pattern_size if isinstance(named, Format) else 0
    return ceil((1.0 + size(text)) * _TRAVERSAL) * ceil(pattern * _PATTERN)


def _selector(*arguments: Any) -> int:
    length = size(arguments[1])
    return LIST + ceil(length * _TRAVERSAL) + ceil(ceil(length * _REQUIREMENTS_PER_CHARACTER) * float(_REQUIREMENT))


def _all_of_it(*arguments: Any) -> int:
    return _content(arguments[0])


def _content(value: Any) -> int:
    """traversalCost: strings by bytes, rounded down; what has no content is 1."""
    if isinstance(value, str):
        return int(len(value.encode(errors="replace")) * _TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * _TRAVERSAL)
    if isinstance(value, list):
        return sum(map(_content, value))
    if is_map(value):
        return sum(_content(key) + _content(found) for key, found in items(value))
    return 1


def _contains_ip(cidr: Any, _ip: Any) -> int:
    return ceil((size(cidr) + size(cidr)) * _TRAVERSAL)


def _contains_ip_text(cidr: Any, ip: Any) -> int:
    return _contains_ip(cidr, ip) + _traversal(ip)


def _contains_cidr(cidr: Any, other: Any) -> int:
    return _contains_ip(cidr, other) + _traversal(cidr) + 1


def _contains_cidr_text(cidr: Any, other: Any) -> int:
    return _contains_cidr(cidr, other) + _traversal(other)


def _listing(length: float) -> int:
    """A list of so many elements is made."""
    return int(length) + 1 + LIST


def _flattened(*arguments: Any) -> int:
    depth = arguments[1] if len(arguments) > 1 and isinstance(arguments[1], int) else 1
    return _listing(size(arguments[0]) * max(float(depth), 0.0))


def _list_or_abort(values: Any) -> list[Any]:
    """cel-go takes these for lists without a check, and fails if they are none."""
    if isinstance(values, list):
        return values
    conversion = f"interface conversion: {go_type_name(values)} is not traits.Lister: missing method Add"
    raise Aborted(f"internal error: {conversion}")


def _compared(values: Any) -> int:
    """Every element with every other one."""
    values = _list_or_abort(values)
    factor = 2.0 + (_TRAVERSAL if values and isinstance(values[0], str | bytes) else 0)
    return _listing(len(values) ** 2 * factor)


def _sorted_by(_values: Any, keys: Any) -> int:
    return _compared(keys)


def _sets(left: Any, right: Any) -> int:
    return 1 + size(left) * size(right)


def _sets_twice(left: Any, right: Any) -> int:
    return 1 + size(left) * size(right) * 2


def _second(*arguments: Any) -> int:
    return size(arguments[1])


_KINDS: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
)

_EXTENSIONS: Final[dict[str, Cost]] = {
    "list_flatten": _flattened,
    "list_flatten_int": _flattened,
    "list_distinct": _compared,
    **{f"list_{kind}_sort": _compared for kind in _KINDS},
    **{f"list_{kind}_sortByAssociatedKeys": _sorted_by for kind in _KINDS},
    "list_sets_contains_list": _sets,
    "list_sets_intersects_list": _sets,
    "list_sets_equivalent_list": _sets_twice,
}

WALKING: Final = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})
"""Functions whose cost is that of walking over all that is in their argument; it may be 0."""

_FUNCTIONS: Final[dict[str, Cost]] = {
    "check": lambda *_: _CHECK,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(WALKING, _all_of_it),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first),
    **dict.fromkeys(("replace", "split"), _twice),
    **dict.fromkeys(("find", "findAll"), _regex),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _first),
    "ip.isCanonical": _twice,
    "validate": _validate,
}

_OVERLOADS: Final[dict[str, Cost]] = {
    **dict.fromkeys(
        (
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ),
        _first,
    ),
    "in_list": _second,
    **{
        f"{name}_{kind}": difference
        for name in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "add_string": _both,
    "add_bytes": _both,
    "matches_string": _regex,
    "contains_string": _product,
}

_BY_RESULT: Final[dict[str, Cost]] = {
    "list_slice": lambda result: _listing(size(result)),
    "lists_range": lambda result: _listing(size(result)),
    "list_reverse": lambda result: _listing(size(result)),
    "list_join": lambda result: ceil(size(result) * 2 * _TRAVERSAL),
    "list_join_string": lambda result: ceil(size(result) * 2 * _TRAVERSAL),
}
"""These are counted after the call; their own functions limit what they make."""


def by_arguments(function: str, overload: str) -> Cost | None:
    """The cost of a call that depends on its arguments; None for 1. ``overload`` is "" if there are several."""
    if overload in _EXTENSIONS:
        return _EXTENSIONS[overload]
    if function == "ip" and overload != "cidr_ip":
        return _first
    if function == "containsIP":
        return _contains_ip_text if overload == "cidr_contains_ip_string" else _contains_ip
    if function == "containsCIDR":
        return _contains_cidr_text if overload == "cidr_contains_cidr_string" else _contains_cidr
    return _FUNCTIONS.get(function) or _OVERLOADS.get(overload)


def walk(value: Any, effort: Effort) -> None:
    """Count the values within one, before ``_content`` walks over them: it costs what it finds, which may be nothing.

    A list may stand in a list twice, and that one in another twice: the walk ends when it has taken too long.
    """
    if isinstance(value, list):
        effort(1 + len(value))
        for found in value:
            walk(found, effort)
    elif isinstance(value, str | bytes):
        scan(value, effort)
    elif is_map(value):
        effort(1 + len(value))
        for _, found in items(value):
            walk(found, effort)


def by_result(function: str, overload: str) -> Cost | None:
    """The cost of a call that depends on what comes out of it, if it does."""
    return _BY_RESULT["list_join"] if function == "join" else _BY_RESULT.get(overload)
