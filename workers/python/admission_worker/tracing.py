"""The policy's span in OpenTelemetry, for workers whose author has it installed. Without it, nothing happens here.

The gateway's ``traceparent`` is the span's parent, and the span is the current one while the function runs, in a
coroutine and in a thread as well: context variables are right where the function is called. Only the API is used; an
exporter is the author's to set up. Where there is none and the gateway does not trace, no span is made: it would be
recorded by nobody, and costs more than a plain function.

What a policy raises is not recorded on the span, since its text may hold a Secret: the verdict is, and the worker's log
has the rest.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

try:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:  # the extra "opentelemetry" is not installed
    _available = False
else:
    _available = True

SCOPE: Final = "admission_worker"

HEADER: Final = "traceparent"
"""W3C Trace Context's header, and the metadata's key on ``Review``."""


class Verdict:
    """What the span is told when the function has returned."""

    __slots__ = ("_span",)

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def is_known(self, arm: str | None) -> None:
        """The outcome's arm: ``allow``, ``deny`` or ``failure``."""
        if self._span is None:
            return
        self._span.set_attribute("admission.verdict", arm or "failure")
        if arm == "failure":
            self._span.set_status(trace.StatusCode.ERROR)


_UNTRACED: Final = Verdict()


@contextmanager
def span(policy: str, uid: str, traceparent: str) -> Iterator[Verdict]:
    """The policy's span, current inside the block.

    Args:
        policy: its name.
        uid: the AdmissionRequest's.
        traceparent: the gateway's, or ``""``. What cannot be read counts as that, as W3C has it.
    """
    if not _available or not (traceparent or _is_set_up()):
        yield _UNTRACED
        return
    parent = TraceContextTextMapPropagator().extract({HEADER: traceparent})
    attributes = {"admission.policy": policy, "admission.uid": uid}
    tracer = trace.get_tracer(SCOPE)
    with tracer.start_as_current_span(
        f"admission.worker/{policy}",
        context=parent,
        kind=trace.SpanKind.SERVER,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        yield Verdict(current)


def current_traceparent() -> str:
    """The trace context that is current where this is called, as W3C writes it; ``""`` where there is none."""
    if not _available:
        return ""
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(HEADER, "")


def traceparent_of(metadata: Sequence[tuple[str, str | bytes]] | None) -> str:
    """The ``traceparent`` of a call's metadata; ``""`` where there is none."""
    return next((str(value) for key, value in metadata or () if key == HEADER), "")


def _is_set_up() -> bool:
    """Whether somebody records spans: OpenTelemetry's own stand-in is there until a provider is set."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
