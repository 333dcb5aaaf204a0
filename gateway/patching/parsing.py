"""Parses the JSON that a worker sent. Any invalid bytes are a PatchError."""

from collections.abc import Generator
from typing import Any, TypeVar

import msgspec

from gateway.depth import bounded, most_charged, surveyed, too_deep
from gateway.json_values import VALUES
from gateway.patching.equality import Value
from gateway.patching.errors import PatchError, PatchLimitError, kind
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.scopes import pointer
from gateway.scopes.pointer import Pointer, PointerError
from gateway.slices import finished

T = TypeVar("T")


def parse_object(content: bytes, *, limits: PatchLimits = DEFAULT_LIMITS, is_counted: bool = False) -> dict[str, Value]:
    """The one JSON object that a text holds. Of members with the same name the last one counts.

    Raises PatchError if it is not JSON, not an object, or deeper than ``limits.depth``.
    """
    value: Any = decode(VALUES, content, "the object", limits, is_counted=is_counted)
    if type(value) is not dict:
        raise PatchError(f"the object: expected a JSON object, found {kind(value)}")
    return value


def count(content: bytes, name: str, limits: PatchLimits) -> Generator[None, None, None]:
    """Count the values and the levels of a text in slices, before it is decoded with ``is_counted``.

    Raises PatchLimitError if there are too many.
    """
    if len(content) <= limits.values:
        is_too_deep = too_deep(content, limits.depth)
    else:
        values, is_too_deep = yield from bounded(content, limits.values, limits.depth)
        if values > limits.values:
            raise PatchLimitError(f"{name}: at most {limits.values} values and names of members, found {values}")
    if is_too_deep:
        raise PatchLimitError(f"{name}: arrays and objects may nest {limits.depth} levels deep, and nest deeper")


def decode(
    decoder: msgspec.json.Decoder[T], content: bytes, name: str, limits: PatchLimits, *, is_counted: bool = False
) -> T:
    """What ``decoder`` makes of a text, which the PatchError calls ``name`` if it is refused. ``is_counted``: see
    ``count``, which is done else.
    """
    if not is_counted:
        finished(count(content, name, limits))
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        # Well-formed, but not what is expected: the wrong type, or a number that no double can hold.
        raise PatchError(f"{name}: {_uncapitalized(str(error))}") from error
    except ValueError as error:
        # msgspec.DecodeError, or UnicodeDecodeError, which it lets through.
        raise PatchError(
            f"{name}: expected JSON in UTF-8: {_uncapitalized(str(error))}{_hint(content, error)}"
        ) from error


def charged(content: bytes, room: int) -> int:
    """How many values and names a text has, with what numbers are charged; an upper bound if that is at most
    ``room``.
    """
    if (most := most_charged(content)) <= room:
        return most
    # Perhaps they are commas and digits in strings. (The nesting of the text is of no interest here.)
    return min(most, finished(surveyed(content, DEFAULT_LIMITS.depth)).values)


def _uncapitalized(text: str) -> str:
    """A library's message, for the middle of a sentence."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _hint(content: bytes, error: ValueError) -> str:
    """A hint for a misleading message: a lone high surrogate at the end of a string is reported as a truncated text."""
    if "truncated" in str(error) and b"\\u" in content:
        return ", or a surrogate without its other half"
    return ""


def parse_pointer(text: str) -> Pointer:
    """The tokens of a JSON Pointer in its string form (RFC 6901, sections 3 and 4).

    Raises PatchError if it neither is empty nor starts with ``/``, or has a ``~`` that is not followed by 0 or 1.
    """
    try:
        return pointer.parse_pointer(text)
    except PointerError as error:
        raise PatchError(str(error)) from None


class TokenCount:
    """Counts the tokens of a patch's pointers before they are split: one of a megabyte of "/" has a million."""

    __slots__ = ("_limits", "_tokens")

    def __init__(self, limits: PatchLimits) -> None:
        self._limits = limits
        self._tokens = 0

    def add(self, text: str, member: str) -> None:
        """Count a pointer, the operation's ``member``. Raises PatchError if it has too many, or all of them have."""
        count = text.count("/")
        if count > self._limits.pointer_tokens:
            raise PatchLimitError(
                f'"{member}": at most {self._limits.pointer_tokens} tokens in a pointer, found {count}'
            )
        self._tokens += count
        if self._tokens > self._limits.tokens:
            raise PatchLimitError(f"a patch may have {self._limits.tokens} tokens in all its pointers, and has more")
