"""Unknown fields, as from a newer gateway."""

from google.protobuf.message import Message

UNKNOWN_FIELDS = bytes.fromhex("c03e 2a") + bytes.fromhex("ca3e 03 616263") + bytes.fromhex("d53e 01020304")
"""Field 1000 a varint (42), field 1001 a text ("abc"), field 1002 four bytes: tag = number << 3 | wire type."""


def with_unknown_fields(message: Message) -> bytes:
    """The message's bytes, followed by unknown fields."""
    return message.SerializeToString() + UNKNOWN_FIELDS


def nested(tag: int, content: bytes) -> bytes:
    """A field with a message of these bytes.

    Args:
        tag: number << 3 | 2, below 128.
        content: the message.
    """
    return bytes([tag]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 127:  # noqa: PLR2004 - seven bits a byte
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])
