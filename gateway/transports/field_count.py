"""Counts the fields of a protobuf message without parsing it: "a Protocol Buffer message is a series of key-value
pairs", and each has its length.

Parsing a message allocates everything in it at once, a hundred bytes of memory for two on the wire. Counting allocates
one number at a time, and stops at the limit.
"""

from functools import lru_cache
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
"""The wire types that have a value. (Each end of a group, a deprecated feature, counts as a field.)"""

_BYTES: Final = {_FIXED64: 8, _FIXED32: 4}

LARGE_BYTES: Final = 65_536
"""From here on a message is counted before it is parsed. In a smaller one there are 32,768 fields at most, which take
some milliseconds."""

_M = TypeVar("_M", bound=Message)
_Inner = dict[int, Any]
"""The fields of a message that are messages, by number, each with its own such fields."""


def fields(content: bytes, most: int) -> int:
    """The fields of a message, on its first level; any number greater than ``most`` if there are more.

    In invalid bytes it counts the fields before the error, which the parser then reports.
    """
    return _count(content, most, {})


def parsed(kind: type[_M], content: bytes, *, most: int, small: int = LARGE_BYTES) -> _M:
    """The message in these bytes.

    Args:
        kind: its type.
        content: the bytes.
        most: how many fields it may have, with those of its inner messages.
        small: up to this size, fields are not counted.

    Raises:
        DecodeError: they are invalid, or have more fields.
    """
    if len(content) > small and _count(content, most, _inner(kind.DESCRIPTOR)) > most:
        raise DecodeError(f"more than {most} fields")
    return kind.FromString(content)


def _count(content: bytes, most: int, inner: _Inner) -> int:
    """The fields, those of inner messages included."""
    position, count, end = 0, 0, len(content)
    outer: list[tuple[int, _Inner]] = []  # the end and the fields of each enclosing message
    while count <= most:
        while position >= end and outer:
            # A field that is truncated, or longer than the enclosing message, ends where that ends.
            position = end
            end, inner = outer.pop()
        if position >= end:
            break
        key, position = _varint(content, position)
        kind = key & 7
        if kind in {_VARINT, _LENGTH}:
            value, position = _varint(content, position)
            if kind == _LENGTH:
                within = inner.get(key >> 3)
                if within is None:
                    position += value
                else:
                    outer.append((end, inner))
                    end, inner = min(end, position + value), within
        else:
            position += _BYTES.get(kind, 0)
        count += 1
    return count


@lru_cache
def _inner(kind: Descriptor) -> _Inner:
    return {
        field.number: _inner(field.message_type)
        for field in kind.fields
        if field.type == FieldDescriptor.TYPE_MESSAGE and field.message_type is not None
    }


def _varint(content: bytes, position: int) -> tuple[int, int]:
    """The number at a position, and the position after it. A truncated number ends with the bytes."""
    value, shift = 0, 0
    while position < len(content):
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            break
        shift += 7
        if shift > 63:  # noqa: PLR2004 - a varint has ten bytes at most
            break
    return value, position
