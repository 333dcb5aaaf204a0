"""A list of JSON Pointers (RFC 6901), as ``inputs`` and ``writes`` are written.

A list with any error in it grants nothing at all: with one place misspelt, it is unknown what the others were to be
granted with. (Its policy has a fault, and is not called.)

Overlaps are no error, "the wider wins"; but the narrower one has no effect, so there is a warning.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.errors import ConfigurationError, Findings
from gateway.quoting import quoted
from gateway.scopes.pointer import Pointer, PointerError, parse_pointer
from gateway.scopes.pointer_set import ANY, PointerSet

MAX_POINTERS: Final = 256
"""In one list. A Pod's template, the largest thing that is read piece by piece, has some 40 members with a meaning of
their own; a document is cut out once for each policy and review, and walks each pointer."""

MAX_TOKENS: Final = 256
"""Of one pointer: no request is nested deeper than 256 levels, so a longer one could not point at anything."""

_SLASH: Final = 'must be a JSON Pointer (RFC 6901), which starts with "/", such as "{}"'
_TILDE: Final = 'must be a JSON Pointer (RFC 6901), in which "~" stands as "~0" and "/" in a name as "~1"'


class Named(Struct, frozen=True, kw_only=True):
    """One pointer of a list as it is written, where it stands, and its tokens."""

    field: Field
    text: str
    pointer: Pointer


Judge = Callable[[Named], str | None]
"""Why a well-formed pointer cannot be granted: the message; None if it can."""


def read_pointers(field: Field, judge: Judge, warnings: Findings, *, example: str) -> Sequence[Named] | None:
    """The pointers that stand here; none if there is an error in any of them, None if the field is absent.

    ``[]`` is not absent: it grants nothing. Overlaps and what looks mistyped are reported to ``warnings``.
    ``example`` is a valid pointer, for messages.
    """
    if field.absent:
        _warn_of_null(field, warnings)
        return None
    before = len(field.findings)
    items = field.items(advice=f'a list of JSON Pointers such as ["{example}"]') or []
    if len(items) > MAX_POINTERS:
        field.refuse(field_errors.too_many(len(items), MAX_POINTERS))
        return ()
    found = [(item, item.text()) for item in items]
    named = [
        each for item, text in found if text is not None and (each := _read(item, text, judge, example)) is not None
    ]
    _refuse_duplicates(named)
    if len(field.findings) > before:
        return ()
    _warn_of_empty_names(named, warnings)
    _warn_of_overlaps(named, warnings)
    return named


def places_of(named: Sequence[Named]) -> PointerSet:
    """The set of places that the pointers name."""
    return PointerSet(each.pointer for each in named)


def _read(field: Field, text: str, judge: Judge, example: str) -> Named | None:
    try:
        pointer = parse_pointer(text)
    except PointerError:
        field.refuse(field_errors.invalid(text, _TILDE if text.startswith("/") else _SLASH.format(example)))
        return None
    if len(pointer) > MAX_TOKENS:
        detail = f"must have at most {MAX_TOKENS} names, and has {len(pointer)}: no request is nested so deep"
        field.refuse(field_errors.invalid(text, detail))
        return None
    named = Named(field=field, text=text, pointer=pointer)
    error = judge(named)
    if error is not None:
        field.refuse(error)
        return None
    return named


def _refuse_duplicates(named: Sequence[Named]) -> None:
    """A pointer has one spelling only: equal ones are equal texts."""
    seen: dict[str, str] = {}
    for each in named:
        first = seen.setdefault(each.text, each.field.place.path)
        if first != each.field.place.path:
            each.field.refuse(field_errors.duplicate(each.text), f"the first is {first}")


def _warn_of_null(field: Field, warnings: Findings) -> None:
    """A list of which every line was commented out reads as null, as Kubernetes' "absent": as the widest grant."""
    if field.node is not None:
        message = "null is the same as leaving it out, which grants the most; write [] for nothing, or remove it"
        warnings.append(ConfigurationError(place=field.place, message=message))


def _warn_of_empty_names(named: Sequence[Named], warnings: Findings) -> None:
    for each in named:
        if each.text.endswith("/"):
            message = f'{quoted(each.text)} names a member "" of {quoted(each.text[:-1])}; leave out the last "/"'
            warnings.append(ConfigurationError(place=each.field.place, message=message))


def _warn_of_overlaps(named: Sequence[Named], warnings: Findings) -> None:
    widest = set(places_of(named).pointers)
    wide = [each for each in named if each.pointer in widest]
    for each in named:
        if each.pointer not in widest:
            wider = next(one for one in wide if _covers(one.pointer, each.pointer))
            message = f"{quoted(each.text)} lies in {quoted(wider.text)}, which is wider and wins; remove one of them"
            warnings.append(ConfigurationError(place=each.field.place, message=message))


def _covers(wide: Pointer, narrow: Pointer) -> bool:
    return len(wide) <= len(narrow) and all(mine in (ANY, its) for mine, its in zip(wide, narrow, strict=False))
