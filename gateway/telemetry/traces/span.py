"""One finished span: what OpenTelemetry's exporters are given, without importing them."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gateway.enums import StrEnum

ATTRIBUTE_CHARACTERS: Final = 256
"""Of a text in an attribute: a name of Kubernetes has at most 253."""

Value = str | bool | int | float


class SpanKind(StrEnum):
    """OpenTelemetry's kinds, by the names of its ``SpanKind``."""

    SERVER = "SERVER"
    CLIENT = "CLIENT"
    CONSUMER = "CONSUMER"
    PRODUCER = "PRODUCER"
    INTERNAL = "INTERNAL"


class SpanLink(Struct, frozen=True):
    """Another span that this one waited for: hexadecimal trace, and the number of the span."""

    trace_id: str
    span_id: int


class Span(Struct, frozen=True, kw_only=True):
    """A span. Times are Unix seconds; ``parent_id`` is 0 for a root. ``error`` is the status' text, "" without one."""

    name: str
    kind: SpanKind = SpanKind.INTERNAL
    trace_id: str
    span_id: int
    parent_id: int = 0
    is_parent_remote: bool = False
    tracestate: str = ""
    started: float
    ended: float
    attributes: Mapping[str, Value] = {}
    links: tuple[SpanLink, ...] = ()
    error: str = ""


def shortened(text: str) -> str:
    """A text for an attribute."""
    return text if len(text) <= ATTRIBUTE_CHARACTERS else text[: ATTRIBUTE_CHARACTERS - 1] + "…"
