"""The policy's span in OpenTelemetry, for workers whose author has it installed. Without it, nothing happens here.

The gateway's ``traceparent`` is the span's parent, and the span is the current one while the function runs, in a
coroutine and in a thread as well: context variables are right where the function is called. Only the API is used; an
exporter is the author's to set up. Where there is none and the gateway does not trace, no span is made: it would be
recorded by nobody, and costs more than a plain function.

It is imported for the first call that may be traced, because that takes as long as a tenth of the worker's start: one
with a ``traceparent``, or any once the author has imported OpenTelemetry, or named a provider in its environment
variable.

What a policy raises is not recorded on the span, since its text may hold a Secret: the verdict is, and the worker's log
has the rest.
"""

import functools
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

SCOPE: Final = "admission_worker"

HEADER: Final = "traceparent"
"""W3C Trace Context's header, and the metadata's key on ``Review``."""


_API: Final = "opentelemetry.trace"
_PROVIDER: Final = "OTEL_PYTHON_TRACER_PROVIDER"
"""Where OpenTelemetry is told which provider it loads by itself."""


@functools.cache
def _api() -> Any:
    """OpenTelemetry's ``trace``; None if the extra "opentelemetry" is not installed."""
    try:
        return import_module(_API)
    except ImportError:
        return None


@functools.cache
def _propagator() -> Any:
    """What reads and writes W3C's header."""
    return import_module("opentelemetry.trace.propagation.tracecontext").TraceContextTextMapPropagator()


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
            self._span.set_status(_api().StatusCode.ERROR)


_UNTRACED: Final = Verdict()


@contextmanager
def span(policy: str, uid: str, traceparent: str) -> Iterator[Verdict]:
    """The policy's span, current inside the block.

    Args:
        policy: its name.
        uid: the AdmissionRequest's.
        traceparent: the gateway's, or ``""``. What cannot be read counts as that, as W3C has it.
    """
    if not (traceparent or _is_set_up()) or _api() is None:
        yield _UNTRACED
        return
    trace = _api()
    parent = _propagator().extract({HEADER: traceparent})
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
    if _api() is None:
        return ""
    carrier: dict[str, str] = {}
    _propagator().inject(carrier)
    return carrier.get(HEADER, "")


def traceparent_of(metadata: Sequence[tuple[str, str | bytes]] | None) -> str:
    """The ``traceparent`` of a call's metadata; ``""`` where there is none."""
    return next((str(value) for key, value in metadata or () if key == HEADER), "")


def _is_set_up() -> bool:
    """Whether spans are recorded: OpenTelemetry's own stand-in is there until a provider is set."""
    if _API not in sys.modules and _PROVIDER not in os.environ:
        return False
    trace = _api()
    return trace is not None and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
