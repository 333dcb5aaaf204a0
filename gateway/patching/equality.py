"""When two JSON values are equal: RFC 6902, section 4.6.

"numbers: are considered equal if their values are numerically equal", so 1 equals 1.0; strings, arrays and objects are
compared by content, and "ordering of the serialization of object members is not significant"; literals "if they are the
same", so ``true`` does not equal 1 as in Python.
"""

from typing import Any, TypeAlias

Value: TypeAlias = Any
"""A decoded JSON value: ``dict[str, Value] | list[Value] | str | int | float | bool | None``, of exactly these types.

It is Any for the type checker, because readers know the type from Kubernetes' schema and would have to narrow a union
at every step. Values are never mutated: they are shared."""


def equal(one: Value, other: Value) -> bool:
    """Whether two decoded JSON values are the same JSON value. Shared parts are not visited."""
    # Python's own comparison runs at C speed and stops at the first difference. Values that it finds unequal are
    # unequal in JSON too; values that it finds equal may still have true where the other has 1.
    return one is other or (one == other and _same_booleans(one, other))


def _same_booleans(one: Value, other: Value) -> bool:
    """Whether two values that are equal in Python have their booleans in the same places."""
    if one is other:
        return True
    kind = type(one)
    if kind is dict:
        return all(_same_booleans(value, other[name]) for name, value in one.items())
    if kind is list:
        return all(map(_same_booleans, one, other))
    return (kind is bool) is (type(other) is bool)
