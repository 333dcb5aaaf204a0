"""Bounds the texts of an answer: message, reason, details, audit annotations and warnings together.

A worker may send 41 MB of them, which would be copied into the response, the decision, the log and the traces. An
answer with more than ``limit`` characters keeps its verdict, because an error is not a verdict: a denial whose message
is too long is still a denial. Of its texts, those come first that decide what the client sees:

===========  ==================================================================
reason       the first 256 characters: it is one word
message      the first characters, and at the end that it is cut
details      whole, or without causes, or not at all
annotations  those that fit, in their order; each is whole, or dropped
warnings     the same; the last one says what was dropped
===========  ==================================================================
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from gateway.engine.verdicts import Answer, Deny

_encode: Final = msgspec.json.Encoder().encode

_REASON: Final = 256
"""Characters of a reason. Kubernetes' longest has 28."""

_T = TypeVar("_T")


def characters(answer: Answer) -> int:
    """How many characters the texts of an answer have, those of its details as JSON."""
    annotations = answer.audit_annotations
    count = sum(map(len, answer.warnings)) + sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if isinstance(answer, Deny):
        count += len(answer.message) + len(answer.reason)
        if answer.details is not None:
            count += len(_encode(answer.details))
    return count


def shortened(answer: Answer, limit: int) -> Answer:
    """The same answer with at most ``limit`` characters of text, besides the sentences that say what is missing."""
    room, changes = limit, dict[str, Any]()
    if isinstance(answer, Deny):
        changes["reason"] = answer.reason[:_REASON]
        changes["message"] = message = _cut(answer.message, room - len(changes["reason"]))
        room -= len(changes["reason"]) + len(message)
        changes["details"] = details = _fitting_details(answer, room)
        room -= 0 if details is None else len(_encode(details))
    annotations = dict(_first(answer.audit_annotations.items(), lambda pair: len(pair[0]) + len(pair[1]), room))
    room -= sum(map(len, annotations)) + sum(map(len, annotations.values()))
    warnings = _first(answer.warnings, len, room)
    fewer_warnings = len(answer.warnings) - len(warnings)
    fewer_annotations = len(answer.audit_annotations) - len(annotations)
    if fewer_warnings or fewer_annotations:
        warnings.append(
            f"{fewer_warnings} warnings and {fewer_annotations} audit annotations of a policy are dropped: the texts "
            f"of its answer have {characters(answer)} characters, and the limit is {limit}"
        )
    return replace(answer, warnings=tuple(warnings), audit_annotations=annotations, **changes)


def _cut(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return f"{text[:room]}… (cut: this message has {len(text)} characters, and the limit of an answer is {room})"


def _fitting_details(deny: Deny, room: int) -> Any:
    if deny.details is None or len(_encode(deny.details)) <= room:
        return deny.details
    details = {name: value for name, value in deny.details.items() if name != "causes"}
    return details if details and len(_encode(details)) <= room else None


def _first(items: Iterable[_T], size: Callable[[_T], int], room: int) -> list[_T]:
    """The first items that fit together."""
    fitting: list[_T] = []
    for item in items:
        room -= size(item)
        if room < 0:
            break
        fitting.append(item)
    return fitting
