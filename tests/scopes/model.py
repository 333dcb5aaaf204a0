"""What places mean, said as simply as can be: a set of patterns, and a walk over all pointers of a value. No tree."""

from collections.abc import Collection
from typing import Any

from hypothesis import strategies as st

from gateway.scopes.pointer import Pointer
from gateway.scopes.pointer_set import ANY
from gateway.scopes.projection import NOTHING

TOKENS = st.sampled_from(["a", "b", "c", "0", "1", "00", "-", "-1", "", ANY, ANY])
"""Few, so that pointers overlap; and with every meaning that a token can have."""

POINTERS = st.lists(TOKENS, max_size=5).map(tuple)
SETS = st.lists(POINTERS.filter(bool), max_size=6)
"""Without the empty pointer, which would leave nothing to find out."""

VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1.5, "", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "0", "00", "-", "", ANY]), inner, max_size=4)
    ),
    max_leaves=16,
)


def inside(pointer: Pointer, patterns: Collection[Pointer]) -> bool:
    """Whether a pattern names ``pointer``, or something that it lies in. A ``*`` in it is some member or other."""
    return any(_meets(pattern, pointer[: len(pattern)]) for pattern in patterns)


def above(pointer: Pointer, patterns: Collection[Pointer]) -> bool:
    """Whether a pattern goes on below ``pointer``."""
    return any(len(pattern) > len(pointer) and _meets(pattern[: len(pointer)], pointer) for pattern in patterns)


def _meets(pattern: Pointer, pointer: Pointer) -> bool:
    return len(pattern) == len(pointer) and all(
        mine == ANY or (mine == its and its != ANY) for mine, its in zip(pattern, pointer, strict=True)
    )


def part(value: Any, patterns: Collection[Pointer], at: Pointer = ()) -> Any:
    """The part of ``value`` that the patterns show; NOTHING if it does not appear. A container at the top does."""
    if inside(at, patterns):
        return value
    if at and not above(at, patterns):
        return NOTHING
    if isinstance(value, dict):
        shown = {name: part(child, patterns, (*at, name)) for name, child in value.items()}
        return {name: child for name, child in shown.items() if child is not NOTHING}
    if isinstance(value, list):
        elements = [part(child, patterns, (*at, str(index))) for index, child in enumerate(value)]
        return [blank(value[index]) if each is NOTHING else each for index, each in enumerate(elements)]
    return NOTHING


def blank(element: Any) -> Any:
    """ "An element that no input reaches is {}, [] or null, by its own kind"."""
    return {} if isinstance(element, dict) else [] if isinstance(element, list) else None


def found(value: Any, at: Pointer = ()) -> list[tuple[Pointer, Any]]:
    """Everything that stands in a value, itself first, each with its pointer."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(at, value), *[each for name, child in children for each in found(child, (*at, str(name)))]]
