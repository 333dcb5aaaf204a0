"""JSON Pointer, RFC 6901: where something stands in a document.

The empty pointer is the whole document. Every other one is a list of tokens, each with a ``/`` in front, in which
``~1`` stands for ``/`` and ``~0`` for ``~``. In an array a token is an index without leading zeros, or ``-`` for the
place after the last.
"""

import re
import sys
from collections.abc import Iterable
from typing import TypeAlias

from gateway.quoting import json_quoted

Pointer: TypeAlias = tuple[str, ...]
"""A parsed pointer: its tokens, unescaped. ``()`` is the whole document."""


class PointerError(ValueError):
    """A text that is no JSON Pointer; the message says why."""


_LONE_TILDE = re.compile("~(?![01])")
_LONGEST_INDEX = len(str(sys.maxsize)) - 1
"""Digits of an index that can be meant: 18, more than memory has bytes. Beyond about 4,300 Python refuses to read
them."""

_FREQUENT = {str(index): index for index in range(256)}
"""Most arrays are short, and looking an index up takes a third of the time of reading it."""


def parse_pointer(text: str) -> Pointer:
    """The tokens of a JSON Pointer in its string form (RFC 6901, sections 3 and 4).

    Raises PointerError if it neither is empty nor starts with ``/``, or has a ``~`` that is not followed by 0 or 1.
    """
    if not text:
        return ()
    if text[0] != "/":
        raise PointerError(f'expected a JSON Pointer, which is empty or starts with "/", found {json_quoted(text)}')
    if "~" not in text:
        return tuple(text[1:].split("/"))
    if _LONE_TILDE.search(text):
        # "Error conditions include ... invalid pointer syntax" (section 7).
        raise PointerError(f'expected a JSON Pointer, in which "~" is followed by 0 or 1, found {json_quoted(text)}')
    # "first transforming any occurrence of the sequence '~1' to '/', and then transforming any occurrence of the
    # sequence '~0' to '~'. ... an implementation avoids the error of turning '~01' first into '~1' and then into '/'"
    # (section 4).
    return tuple([token.replace("~1", "/").replace("~0", "~") for token in text[1:].split("/")])


def format_pointer(tokens: Iterable[str]) -> str:
    """The string form of a pointer: ``("metadata", "a/b")`` gives ``/metadata/a~1b``."""
    return "".join(["/" + escaped(token) for token in tokens])


def escaped(token: str) -> str:
    """A token as it is written in a pointer, without the ``/`` in front."""
    return token.replace("~", "~0").replace("/", "~1")


def array_index(token: str) -> int | None:
    """The index that a token names, or None if it names none; one with more than 18 digits is beyond every array.

    "array-index = %x30 / ( %x31-39 *(%x30-39) ) ; "0", or digits without a leading "0"" (RFC 6901, section 4).
    """
    index = _FREQUENT.get(token)
    if index is not None:
        return index
    if not (token.isdecimal() and token.isascii()) or (token[0] == "0" and len(token) > 1):
        return None
    return int(token) if len(token) <= _LONGEST_INDEX else sys.maxsize
