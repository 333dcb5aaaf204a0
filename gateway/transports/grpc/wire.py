"""How many fields a protobuf message has, counted without parsing it: "a Protocol Buffer message is a series of
key-value pairs", and each says how long it is.

Whoever parses a message pays for everything in it at once, a hundred bytes of memory for two on the wire; who counts
pays for one number at a time, and stops when it is too many.
"""

from typing import Final

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
"""The wire types that are followed by something. (Of groups, which nobody uses, each end counts as a field.)"""

_BYTES: Final = {_FIXED64: 8, _FIXED32: 4}


def fields(content: bytes, most: int) -> int:
    """The fields of a message, on its first level; any number greater than ``most`` if there are more.

    Of bytes that are no message it counts those before the mistake, which the parser will find.
    """
    position, count, end = 0, 0, len(content)
    while position < end and count <= most:
        key, position = _varint(content, position)
        kind = key & 7
        if kind in {_VARINT, _LENGTH}:
            value, position = _varint(content, position)
            position += value if kind == _LENGTH else 0
        else:
            position += _BYTES.get(kind, 0)
        count += 1
    return count


def _varint(content: bytes, position: int) -> tuple[int, int]:
    """The number at a place, and the place behind it. One that is cut is as long as there are bytes."""
    value, shift = 0, 0
    while position < len(content):
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            break
        shift += 7
        if shift > 63:  # noqa: PLR2004 - a varint has ten bytes at most
            break
    return value, position
