"""The parts of a decision as text for a terminal, for ``demo`` and ``review``.

Texts of workers and requests may hold control characters: those that would move a terminal's cursor are replaced by a
question mark.
"""

from collections.abc import Iterator
from typing import NamedTuple

import click
import msgspec

from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Deny, Failure
from gateway.patching.difference import Operation
from gateway.quoting import clean
from gateway.review.request import Request
from gateway.review.response import Status


class Sentence(NamedTuple):
    """A policy's denial or failure: a verb, its colour, and the message."""

    verb: str
    colour: str
    text: str


def title(request: Request) -> str:
    """The title of a review: operation, resource, namespace and name."""
    resource = request.resource.resource + (f"/{request.sub_resource}" if request.sub_resource else "")
    name = request.name or _generate_name(request)
    place = f"{request.namespace}/{name}" if request.namespace else name
    return clean(f"{request.operation} {resource} {place}".rstrip())


def _generate_name(request: Request) -> str:
    metadata = (request.object or {}).get("metadata")
    name = metadata.get("generateName") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def outcome(word: str, status: Status | None) -> str:
    """The outcome: a word, and for a refusal its code and reason."""
    return word if status is None else clean(f"{word}, {status.code} {status.reason}".rstrip())


def sentences(call: InvocationRecord) -> Iterator[Sentence]:
    """Why a policy denies the request, or why there is no verdict; nothing if it allows it."""
    match call.answer:
        case Deny(message=message, reason=reason):
            yield Sentence(
                "denies" if call.enforced else "would deny", "red", clean(message or reason or "without explanation")
            )
        case Failure(reason=reason, message=message):
            yield Sentence("failed", "yellow", clean(f"{reason}: {message}"))


def change(operation: Operation, columns: int) -> str:
    """One changed field and its new value, cut to this many columns."""
    verb = click.style(f"{operation.op:<7}", fg="cyan")
    value = "" if operation.op == "remove" else f" = {msgspec.json.encode(operation.value).decode()}"
    return f"{verb} {short(clean(operation.path + value), columns)}"


def short(text: str, columns: int) -> str:
    """The text, cut to this many columns."""
    return text if len(text) <= columns else text[: columns - 1] + "…"
