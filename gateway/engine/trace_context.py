"""W3C Trace Context: reads the headers of the API server, and makes those that workers get.

    traceparent   VERSION-TRACE_ID-PARENT_ID-FLAGS in lowercase hexadecimal; version ff is invalid, and so are zeros
    tracestate    up to 32 members KEY=VALUE, of which each key is there once

* Invalid, missing or repeated, a traceparent begins a new trace: "If parsing fails, the vendor creates a new
  traceparent ... and MUST NOT attempt to parse tracestate".
* A later version may append to traceparent. It goes on as version 00, with the flags of that version.
* "If parsing tracestate fails, it must be discarded"; the traceparent still counts. If it has more than 512 characters,
  members above 128 characters are removed first, then those at the end.

Without tracing, both go on to the workers as they came. With tracing, ``span_id`` is the gateway's span of the review,
and each sampled call has a span of its own, whose id follows from it: the worker gets it before the span is made.
"""

import math
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

MOST_MEMBERS: Final = 32
"""W3C Trace Context, 3.3.1.1: "There can be a maximum of 32 list-members in a list"."""

STATE_CHARACTERS: Final = 512
"""W3C Trace Context, 3.3.1.5: "Vendors SHOULD propagate at least 512 characters"."""

_LONG_MEMBER: Final = 128

_TRACEPARENT: Final = re.compile(
    r"(?P<version>(?!ff)[0-9a-f]{2})-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<parent>(?!0{16})[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-[\x21-\x7e]*)?"
)
_KEY: Final = r"(?P<key>[a-z][_0-9a-z*/-]{0,255}|[a-z0-9][_0-9a-z*/-]{0,240}@[a-z][_0-9a-z*/-]{0,13})"
_VALUE: Final = r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_MEMBER: Final = re.compile(f"{_KEY}={_VALUE}")

_SAMPLED: Final = 0x01
"""The only flag of version 00."""

_SPANS: Final = (1 << 64) - 1
"""How many ids of spans there are: zero is none."""


class TraceContext(Struct, frozen=True, kw_only=True, gc=False):
    """The trace of one review. ``traceparent`` and ``tracestate`` go to the workers, "" where there is none.

    ``has_span``: the gateway traces, and ``traceparent`` names its span of the review. The rest has no meaning without:
    ``parent_id`` is the API server's span in hexadecimal, "" if the gateway began the trace. ``sampled``: the spans are
    exported in any case; else only those of a review that is denied, fails, or takes ``slow_seconds``.
    """

    traceparent: str = ""
    tracestate: str = ""
    has_span: bool = False
    parent_id: str = ""
    sampled: bool = False
    slow_seconds: float = math.inf

    @property
    def trace_id(self) -> str:
        """Of the traceparent, in hexadecimal; "" if there is none."""
        return self.traceparent[3:35]

    @property
    def span_id(self) -> int:
        """Of the traceparent, which there has to be."""
        return int(self.traceparent[36:52], 16)

    def span_of(self, call: int) -> int:
        """The id of the span of a call, by the call's number in the review."""
        return (self.span_id - 1 + call) % _SPANS + 1

    def of_call(self, call: int) -> str:
        """The traceparent that a worker gets. Calls that are not sampled have no spans, so they share one."""
        return f"00-{self.trace_id}-{self.span_of(call):016x}-01" if self.sampled else self.traceparent


NO_TRACE: Final = TraceContext()


class Parent(Struct, frozen=True, kw_only=True):
    """What the caller sent: its trace and span, whether it is sampled, and both headers as they go on."""

    trace_id: str
    span_id: str
    sampled: bool
    traceparent: str
    tracestate: str


def parent_of(traceparents: Sequence[str], tracestates: Sequence[str]) -> Parent | None:
    """The parent of a review; None without a valid one.

    Args:
        traceparents: the values of all headers of that name.
        tracestates: the same; several are one list.
    """
    found = _TRACEPARENT.fullmatch(traceparents[0]) if len(traceparents) == 1 else None
    if found is None:
        return None
    version, trace, parent, written, more = found.groups()
    flags = int(written, 16)
    if version == "00":
        if more is not None:
            return None
        traceparent = traceparents[0]
    else:
        traceparent = f"00-{trace}-{parent}-{flags & _SAMPLED:02x}"
    return Parent(
        trace_id=trace,
        span_id=parent,
        sampled=bool(flags & _SAMPLED),
        traceparent=traceparent,
        tracestate=_state(",".join(tracestates)) if tracestates else "",
    )


def _state(text: str) -> str:
    """A valid tracestate, cut to what goes on; "" for an invalid one."""
    members = [member for each in text.split(",") if (member := each.strip(" \t"))]
    keys = [found["key"] for member in members if (found := _MEMBER.fullmatch(member))]
    if len(keys) != len(members) or len(set(keys)) != len(keys) or len(keys) > MOST_MEMBERS:
        return ""
    if len(",".join(members)) > STATE_CHARACTERS:
        members = [member for member in members if len(member) <= _LONG_MEMBER]
    while len(",".join(members)) > STATE_CHARACTERS:
        members.pop()
    return ",".join(members)
