"""What a decision is in words, for people at a terminal: the demonstration's and ``review``'s.

Texts of workers and of requests are somebody else's: characters that would move a terminal's cursor are shown as a
question mark.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import click
import msgspec

from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Deny, Failure
from gateway.patching.difference import Operation
from gateway.review.request import Request
from gateway.review.response import Status

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that break a line or turn the direction of the text behind them: a name could show
itself as another one."""


class Sentence(NamedTuple):
    """What a policy has to say: a verb, its colour, and the text."""

    verb: str
    colour: str
    text: str


def title(request: Request) -> str:
    """What a review is about: operation, resource, and which one."""
    resource = request.resource.resource + (f"/{request.sub_resource}" if request.sub_resource else "")
    name = request.name or _generate_name(request)
    place = f"{request.namespace}/{name}" if request.namespace else name
    return clean(f"{request.operation} {resource} {place}".rstrip())


def _generate_name(request: Request) -> str:
    metadata = (request.object or {}).get("metadata")
    name = metadata.get("generateName") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def outcome(word: str, status: Status | None) -> str:
    """How it ended: a word, and of a refusal its code and reason."""
    return word if status is None else clean(f"{word}, {status.code} {status.reason}".rstrip())


def sentences(call: InvocationRecord) -> Iterator[Sentence]:
    """What a policy says against the request, or why it cannot say anything."""
    match call.answer:
        case Deny(message=message, reason=reason):
            yield Sentence(
                "denies" if call.enforced else "would deny", "red", clean(message or reason or "without explanation")
            )
        case Failure(reason=reason, message=message):
            yield Sentence("failed", "yellow", clean(f"{reason}: {message}"))


def change(operation: Operation, room: int) -> str:
    """One changed place and its new value, in so many columns."""
    verb = click.style(f"{operation.op:<7}", fg="cyan")
    value = "" if operation.op == "remove" else f" = {msgspec.json.encode(operation.value).decode()}"
    return f"{verb} {short(clean(operation.path + value), room)}"


def short(text: str, room: int) -> str:
    """The text, cut to so many columns."""
    return text if len(text) <= room else text[: room - 1] + "…"


def clean(text: str) -> str:
    """The text without what would control a terminal; line breaks and tabs stay."""
    return _CONTROL.sub("?", text)
