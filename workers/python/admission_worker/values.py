"""Checks of an author's values: text, whole numbers, lists, mappings. Others raise where they are given."""

from collections.abc import Iterable, Mapping
from typing import Any

from admission_worker.errors import InvalidAnswerError

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
"""The range of the contract's int32."""


def text(value: Any, what: str) -> None:
    """Raise unless the value is Unicode text; ``what`` is its name in the error."""
    if not isinstance(value, str):
        raise InvalidAnswerError(f"{what}: must be text, is {type_of(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidAnswerError(f"{what}: holds a lone surrogate, which is no Unicode text") from None


def int32(value: Any, what: str) -> int:
    """The value, if it is a 32-bit whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not INT32_MIN <= value <= INT32_MAX:
        raise InvalidAnswerError(f"{what}: must be a 32-bit whole number, is {type_of(value)}")
    return value


def tuple_of(kind: type, values: Any, what: str) -> tuple[Any, ...]:
    """The values as a tuple, if each is of this type. A string is not a list of strings."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidAnswerError(f"{what}: must be a list of {kind.__name__}, is {type_of(values)}")
    result = tuple(values)
    for value in result:
        if not isinstance(value, kind):
            raise InvalidAnswerError(f"{what}: must be a list of {kind.__name__}, holds {type_of(value)}")
        if isinstance(value, str):
            text(value, what)
    return result


def mapping(value: Any, what: str) -> Mapping[Any, Any]:
    """The value, if it is a mapping."""
    if not isinstance(value, Mapping):
        raise InvalidAnswerError(f"{what}: must be a mapping, is {type_of(value)}")
    return value


def type_of(value: Any) -> str:
    """The name of the value's type, for errors: the value may be a secret."""
    return type(value).__name__
