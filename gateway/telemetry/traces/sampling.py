"""Head sampling: whether a review's spans are exported in any case, decided before its workers are called.

What the API server decided holds, if the sampler is based on the parent. Else, and without a parent, OpenTelemetry's
rule for a ratio: the last 8 bytes of the trace's id, as a number, are below the ratio of their range. So all components
with the same ratio choose the same traces.
"""

from random import getrandbits
from typing import Final

from gateway.engine.trace_context import Parent, TraceContext

_RANGE: Final = 1 << 64
_LAST_BYTES: Final = _RANGE - 1

_BATCH: Final = 64
"""Traces that are begun at once: the code is then in the processor's cache, and takes a fifth of the time that it takes
once per review."""


class HeadSampler:
    """Begins the traces of reviews.

    Args:
        ratio: of the traces without a parent that are sampled.
        slow_seconds: see TraceContext.
        parent_based: whether the parent's decision counts.
    """

    __slots__ = ("_below", "_is_parent_based", "_ready", "_slow_seconds", "ratio")

    def __init__(self, *, ratio: float, slow_seconds: float, parent_based: bool = True) -> None:
        self.ratio = ratio
        self._below = round(ratio * _RANGE)
        self._slow_seconds = slow_seconds
        self._is_parent_based = parent_based
        self._ready: list[TraceContext] = []

    def begin(self, parent: Parent | None) -> TraceContext:
        """The trace of a review, with new ids."""
        if parent is not None:
            return self._continued(parent)
        if not self._ready:
            self._ready += [self._new() for _ in range(_BATCH)]
        return self._ready.pop()

    def _new(self) -> TraceContext:
        number, span_id = getrandbits(128) or 1, getrandbits(64) or 1
        sampled = number & _LAST_BYTES < self._below
        # One text, and a part of it: two would take a tenth of all that a review without spans pays.
        traceparent = f"00-{number:032x}-{span_id:016x}-0{'1' if sampled else '0'}"
        return TraceContext(
            traceparent=traceparent,
            trace_id=traceparent[3:35],
            span_id=span_id,
            sampled=sampled,
            slow_seconds=self._slow_seconds,
        )

    def _continued(self, parent: Parent) -> TraceContext:
        trace_id, span_id = parent.trace_id, getrandbits(64) or 1
        sampled = parent.sampled if self._is_parent_based else int(trace_id[16:], 16) < self._below
        return TraceContext(
            traceparent=f"00-{trace_id}-{span_id:016x}-0{'1' if sampled else '0'}",
            tracestate=parent.tracestate,
            trace_id=trace_id,
            parent_id=parent.span_id,
            span_id=span_id,
            sampled=sampled,
            slow_seconds=self._slow_seconds,
        )
