"""Head sampling: whether a review's spans are exported in any case, decided before its workers are called.

What the API server decided holds, if the sampler is based on the parent. Else, and without a parent, OpenTelemetry's
rule for a ratio: the last 8 bytes of the trace's id, as a number, are below the ratio of their range. So all components
with the same ratio choose the same traces.
"""

from random import randbytes
from typing import Final

from gateway.engine.trace_context import Parent, TraceContext

_RANGE: Final = 1 << 64

_BATCH: Final = 64
"""Traces that are begun at once: the code is then in the processor's cache, and takes a fifth of the time that it takes
once per review."""

_TRACE_BYTES: Final = 16
_SPAN_BYTES: Final = 8
_NONE: Final = "0" * 32
"""An id of zeros, of a trace; its half is that of a span."""


class HeadSampler:
    """Begins the traces of reviews.

    Args:
        ratio: of the traces without a parent that are sampled.
        slow_seconds: see TraceContext.
        parent_based: whether the parent's decision counts.
    """

    __slots__ = ("_below", "_is_parent_based", "_ready", "_slow_seconds", "_spans", "_take", "ratio")

    def __init__(self, *, ratio: float, slow_seconds: float, parent_based: bool = True) -> None:
        self.ratio = ratio
        # Texts of equally many lowercase digits are in the order of their numbers; "g" is above all of them.
        below = round(ratio * _RANGE)
        self._below = "g" if below == _RANGE else f"{below:016x}"
        self._is_parent_based = parent_based
        self._slow_seconds = slow_seconds
        self._ready: list[TraceContext] = []
        self._take = self._ready.pop
        self._spans: list[str] = []

    def begin(self, parent: Parent | None) -> TraceContext:
        """The trace of a review, with new ids."""
        if parent is not None:
            return self._continued(parent)
        try:
            return self._take()
        except IndexError:
            self._ready += self._new()
            return self._take()

    def _new(self) -> list[TraceContext]:
        traces, spans = _identifiers(_TRACE_BYTES), _identifiers(_SPAN_BYTES)
        below, slow_seconds = self._below, self._slow_seconds
        begun = []
        for trace_id, span_id in zip(traces, spans, strict=True):
            sampled = trace_id[16:] < below
            traceparent = f"00-{trace_id}-{span_id}-0{'1' if sampled else '0'}"
            begun.append(
                TraceContext(traceparent=traceparent, has_span=True, sampled=sampled, slow_seconds=slow_seconds)
            )
        return begun

    def _continued(self, parent: Parent) -> TraceContext:
        if not self._spans:
            self._spans = _identifiers(_SPAN_BYTES)
        trace_id, span_id = parent.trace_id, self._spans.pop()
        sampled = parent.sampled if self._is_parent_based else trace_id[16:] < self._below
        return TraceContext(
            traceparent=f"00-{trace_id}-{span_id}-0{'1' if sampled else '0'}",
            tracestate=parent.tracestate,
            has_span=True,
            parent_id=parent.span_id,
            sampled=sampled,
            slow_seconds=self._slow_seconds,
        )


def _identifiers(size: int) -> list[str]:
    """Random ids of so many bytes, in hexadecimal. Zeros mean none, so it would begin again."""
    made = randbytes(size * _BATCH).hex(" ", size).split()  # noqa: S311 - no secret
    return _identifiers(size) if _NONE[: 2 * size] in made else made
