"""The policy's OpenTelemetry span, if OpenTelemetry's API is installed.

The gateway's ``traceparent`` is the span's parent, and its ``tracestate`` goes on. The span is current while the
function runs, in a coroutine and in a thread too, because context variables are set where the function is called. The
SDK uses only the API; the author sets up an exporter.

====================================  ================================================================
a call                                the current span
====================================  ================================================================
OpenTelemetry is not imported         none; ``current`` has the gateway's context
no exporter, no ``traceparent``       none
no exporter                           the gateway's
the gateway has not sampled it, and   the gateway's; with "always_on" and other samplers that ignore
the sampler follows its parent, as    the parent, the policy's
OpenTelemetry's do by default
else                                  the policy's
====================================  ================================================================

The policy's span would not be recorded in the first four, and costs more than a plain function. Even the gateway's as
the current one costs a tenth of a short call, and only OpenTelemetry can ask for it. So it is there for calls after the
author, or a library that the author uses, has imported OpenTelemetry, or has named a provider in its environment
variable; the import takes as long as a tenth of the worker's start.

The span has the verdict, but not a policy's exception, whose text may have secrets; that is in the worker's log.
"""

import functools
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final, NamedTuple

from admission_worker.proto.admission.worker.v1 import worker_pb2

SCOPE: Final = "admission_worker"

HEADERS: Final = ("traceparent", "tracestate")
"""W3C Trace Context's headers, and the metadata's keys on ``Review``."""


_API: Final = "opentelemetry.trace"
_PROVIDER: Final = "OTEL_PYTHON_TRACER_PROVIDER"
"""The environment variable with the provider that OpenTelemetry loads itself."""

_NOT_SAMPLED: Final = re.compile("00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00").fullmatch
"""A traceparent that can be read, without the flag. Others, which the gateway never sends, OpenTelemetry reads."""

_DROPPED: Final = "remoteParentNotSampled:AlwaysOffSampler"
""""GetDescription ... ParentBased{root:...,remoteParentSampled:...,remoteParentNotSampled:...": the default of all of
them."""


@functools.cache
def _api() -> Any:
    """OpenTelemetry's ``trace``; None if the extra "opentelemetry" is not installed."""
    try:
        return import_module(_API)
    except ImportError:
        return None


@functools.cache
def _inherited_span() -> Any:
    """The module, which needs OpenTelemetry."""
    return import_module("admission_worker.inherited_span")


@functools.cache
def _propagator() -> Any:
    """The reader and writer of W3C's header."""
    return import_module("opentelemetry.trace.propagation.tracecontext").TraceContextTextMapPropagator()


class TraceContext(NamedTuple):
    """The values of both headers; ``""``: without it."""

    traceparent: str = ""
    tracestate: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """Those that are there."""
        return {name: text for name, text in zip(HEADERS, self, strict=True) if text}


NO_TRACE: Final = TraceContext()

_sent: Final = ContextVar("_sent", default=NO_TRACE)
"""What the gateway has sent with the call that runs in this context, if no span of OpenTelemetry's says it."""


class Verdict:
    """Records the verdict on the span when the function has returned."""

    __slots__ = ("_span",)

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def record(self, arm: str | None) -> None:
        """Record the outcome's arm: ``allow``, ``deny`` or ``failure``."""
        if self._span is None:
            return
        self._span.set_attribute("admission.verdict", arm or "failure")
        if arm == "failure":
            self._span.set_status(_api().StatusCode.ERROR)


_UNTRACED: Final = Verdict()


class _Untraced:
    """Nothing is recorded, and OpenTelemetry is not asked."""

    __slots__ = ("_sent_by_gateway",)

    def __init__(self, sent: TraceContext) -> None:
        self._sent_by_gateway = sent

    def __enter__(self) -> Verdict:
        _sent.set(self._sent_by_gateway)
        return _UNTRACED

    def __exit__(self, *_: object) -> None:
        pass


class _Inherited:
    """The gateway's span is current, and nothing is recorded."""

    __slots__ = ("_sent_by_gateway", "_token")

    def __init__(self, sent: TraceContext) -> None:
        self._sent_by_gateway = sent
        self._token: Any = None

    def __enter__(self) -> Verdict:
        self._token = _inherited_span().attach(self._sent_by_gateway)
        return _UNTRACED

    def __exit__(self, *_: object) -> None:
        _inherited_span().detach(self._token)


def span(policy: str, uid: str, sent: TraceContext = NO_TRACE) -> AbstractContextManager[Verdict]:
    """The policy's span, current inside the block; or another one, by the table above.

    Args:
        policy: its name.
        uid: the AdmissionRequest's.
        sent: by the gateway. What cannot be read is ignored, as W3C requires.
    """
    if (_API not in sys.modules and _PROVIDER not in os.environ) or _api() is None:
        return _Untraced(sent)
    provider = _provider_set_up()
    if provider is None:
        return _Inherited(sent) if sent.traceparent else _Untraced(sent)
    if _NOT_SAMPLED(sent.traceparent) and _follows_parent(getattr(provider, "sampler", None)):
        return _Inherited(sent)
    return _recorded(policy, uid, sent)


@contextmanager
def _recorded(policy: str, uid: str, sent: TraceContext) -> Iterator[Verdict]:
    trace = _api()
    parent = _propagator().extract(sent.headers)
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


def current() -> TraceContext:
    """The caller's current trace context; without a span of OpenTelemetry's, what the gateway has sent."""
    carrier: dict[str, str] = {}
    if _API in sys.modules and _api() is not None:
        _propagator().inject(carrier)
    return TraceContext(*(carrier.get(name, "") for name in HEADERS)) if carrier else _sent.get()


def add_metadata(call: worker_pb2.PolicyCall, metadata: Sequence[tuple[str, str | bytes]] | None) -> None:
    """Put the trace context in the metadata of ``Review`` where that of a call on the stream is."""
    sent = {key: str(value) for key, value in metadata or () if key in HEADERS}
    call.traceparent, call.tracestate = (sent.get(name, "") for name in HEADERS)


def sent_with(call: worker_pb2.PolicyCall) -> TraceContext:
    """The trace context of a call."""
    return TraceContext(call.traceparent, call.tracestate) if call.traceparent else NO_TRACE


def _provider_set_up() -> Any:
    """What records spans; None: until a provider is set, OpenTelemetry has a proxy."""
    trace = _api()
    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider


@functools.lru_cache(maxsize=4)
def _follows_parent(sampler: Any) -> bool:
    """Whether it drops what a remote parent has not sampled. OpenTelemetry specifies the description."""
    return sampler is not None and _DROPPED in sampler.get_description()
