"""A Decision as spans.

::

    POST /validate/ENTRY                       server    the review; its parent is the API server's span
      admission.read, .decode, .match          internal  the gateway's own work before the first call; .match is rules,
                                                         selectors, conditions, documents
      admission.policy NAME                    internal  a policy's turn
        GETRANGE                               client    the lookup of its verdict in Redis
        admission.cache                        internal  a verdict from memory, or from an equal call of another
                                                         review, to which it has a link
        admission.worker.v1.Worker/Review      client    the call of a gRPC worker; the worker's span is its child
        send STREAM                            producer  of a worker behind a queue; the bridge's span is its child
        POST                                   client    of an existing webhook
        run HOOK                               internal  of a hook
      admission.compose, .encode               internal  from the last turn's end to the decision; its bytes

A call that was made before its policy's turn, or that no turn used, is a child of the review. Names and attributes
follow OpenTelemetry's conventions for HTTP, RPC, messaging and databases; ``admission.`` is ours, listed in
docs/observe.md. No attribute has a value of an object, and no text of a worker.
"""

from collections.abc import Iterator
from random import getrandbits
from time import monotonic, time
from typing import Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from gateway.engine.answer_source import CallRecord, Source
from gateway.engine.decision import Decision, Outcome
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import ANSWER_WORDS, Failure
from gateway.policies.model import Phase, Policy
from gateway.policies.workers.targets import Worker
from gateway.reasons import Reason
from gateway.telemetry.traces.span import Span, SpanKind, SpanLink, Value, shortened

_PATHS: Final = {Phase.MUTATING: "/mutate", Phase.VALIDATING: "/validate"}

_CACHED: Final = frozenset({Source.MEMORY, Source.REDIS, Source.SHARED})

MOST_TURNS: Final = 200
"""Of one review, that have spans: with twenty attributes each, below half a megabyte."""


def decision_spans(decision: Decision, *, offset: float | None = None) -> list[Span]:
    """The spans of a decision that is traced.

    Args:
        decision: with a trace id.
        offset: seconds from the driver's clock to Unix time; None: those of now.
    """
    return list(_Spans(decision, time() - monotonic() if offset is None else offset).all())


class _Spans:
    def __init__(self, decision: Decision, offset: float) -> None:
        self._decision = decision
        self._trace = decision.trace
        self._offset = offset
        self._called: set[int] = set()

    def all(self) -> Iterator[Span]:
        """All of them, the review's first."""
        decision = self._decision
        yield self._review()
        yield from self._stages()
        turns = [turn for turn in decision.calls if turn.matched]
        for turn in turns[:MOST_TURNS]:
            yield from self._turn(turn)
        for call in decision.sampled_calls[:MOST_TURNS]:
            if call.record.number not in self._called:
                yield self._call(call.policy, call.record, self._trace.span_id, {"admission.call.used": False}, "")

    # ---------------------------------------------------------------------------------------------- the review

    def _review(self) -> Span:
        decision, trace = self._decision, self._trace
        request, ended = decision.request, decision.ledger.encoded or decision.ended
        path = _PATHS[decision.phase]
        route = path if decision.entry is None else f"{path}/{decision.entry}"
        attributes: dict[str, Value] = {
            "http.request.method": "POST",
            "http.response.status_code": 200,
            "http.route": route,
            # Of a call at /SECRET/mutate/ENTRY, too: the secret is in no span.
            "url.path": route,
            "url.scheme": "https",
            "admission.uid": shortened(request.uid),
            "admission.phase": decision.phase.value,
            "admission.outcome": decision.outcome.value,
            "admission.sampled": trace.sampled,
            "admission.operation": shortened(request.operation),
            "admission.group": shortened(request.resource.group),
            "admission.version": shortened(request.resource.version),
            "admission.resource": shortened(request.resource.resource),
            "admission.namespace": shortened(request.namespace),
            "admission.name": shortened(request.name),
            "admission.dry_run": request.dry_run,
            "admission.policies": len(decision.calls),
            "admission.patch.operations": len(decision.patch),
            "admission.budget.left_ms": round(1000 * (decision.ends - ended), 3),
        }
        if request.sub_resource:
            attributes["admission.subresource"] = shortened(request.sub_resource)
        if decision.outcome is Outcome.CANCELED:
            # "If and only if one was received/sent."
            del attributes["http.response.status_code"]
        failure = self._refusing_failure() if decision.outcome is Outcome.FAILED else ""
        if failure:
            attributes["error.type"] = failure
        return Span(
            name=f"POST {route}",
            kind=SpanKind.SERVER,
            trace_id=trace.trace_id,
            span_id=trace.span_id,
            parent_id=int(trace.parent_id, 16) if trace.parent_id else 0,
            is_parent_remote=True,
            tracestate=trace.tracestate,
            started=self._offset + decision.started,
            ended=self._offset + ended,
            attributes=attributes,
            error=failure,
        )

    def _refusing_failure(self) -> str:
        """Why the gateway itself refuses the request, or the reason of the first failure that does."""
        if self._decision.reason is not None:
            return self._decision.reason.value
        for turn in self._decision.calls:
            if turn.failed_closed and isinstance(turn.answer, Failure):
                return turn.answer.reason.value
        return Reason.INTERNAL.value

    def _stages(self) -> Iterator[Span]:
        decision, ledger = self._decision, self._decision.ledger
        is_answered = decision.outcome is not Outcome.CANCELED
        last_turn = max((turn.ended for turn in decision.calls), default=decision.ended)
        dispatched = decision.ended if ledger.dispatched is None else min(ledger.dispatched, decision.ended)
        stages = (
            ("read", decision.started, ledger.read),
            ("decode", ledger.read, ledger.decoded),
            (
                "match",
                ledger.decoded,
                min([dispatched, *(turn.call.called_at for turn in decision.calls if turn.call)]),
            ),
            ("compose", last_turn, decision.ended),
            ("encode", decision.ended, ledger.encoded),
        )
        for name, started, ended in stages:
            if started is not None and ended is not None and (name != "compose" or is_answered):
                yield self._internal(f"admission.{name}", self._trace.span_id, started, ended, {})

    # ------------------------------------------------------------------------------------------------ the turns

    def _turn(self, turn: InvocationRecord) -> Iterator[Span]:
        policy, call, answer = turn.policy, turn.call, turn.answer
        attributes: dict[str, Value] = {
            **_policy_attributes(policy),
            "admission.mode": policy.mode.value,
            "admission.round": turn.round,
            "admission.answer.source": turn.source.value,
        }
        if answer is not None:
            attributes["admission.verdict"] = ANSWER_WORDS[type(answer)]
        if turn.document_size:
            attributes["admission.document.bytes"] = turn.document_size
            attributes["admission.document.key"] = turn.document_key.hex()
        if turn.version:
            attributes["admission.policy.version"] = shortened(turn.version)
        if turn.changes:
            attributes["admission.patch.operations"] = len(turn.changes)
        if turn.conflicts:
            attributes["admission.conflicts"] = len(turn.conflicts)
        if call is not None and call.lookup:
            attributes["admission.cache.result"] = call.lookup
        failure = answer if isinstance(answer, Failure) else turn.instead_of
        if failure is not None:
            attributes["error.type"] = failure.reason.value
        span = self._internal(
            f"admission.policy {policy.qualified_name}", self._trace.span_id, turn.started, turn.ended, attributes
        )
        error = answer.reason.value if isinstance(answer, Failure) else ""
        yield replace(span, error=error) if error else span
        if call is not None and call.number not in self._called and turn.source is not Source.MEMO:
            yield from self._calls(turn, call, span.span_id)

    def _calls(self, turn: InvocationRecord, call: CallRecord, turn_span: int) -> Iterator[Span]:
        """The lookup of a turn's verdict, and the call of its worker."""
        self._called.add(call.number)
        parent = self._trace.span_id if turn.prefetched else turn_span
        attributes: dict[str, Value] = {"admission.cache.result": call.lookup} if call.lookup else {}
        if call.looked_up_at is not None:
            redis: dict[str, Value] = {"db.system.name": "redis", "db.operation.name": "GETRANGE"}
            yield self._internal(
                "GETRANGE", parent, call.called_at, call.looked_up_at, redis | attributes, SpanKind.CLIENT
            )
        elif call.lookup and turn.source in _CACHED:
            links = _links(call)
            span = self._internal("admission.cache", parent, call.called_at, self._end(call), attributes)
            yield replace(span, links=links) if links else span
        if turn.source not in _CACHED:
            failure = turn.answer if isinstance(turn.answer, Failure) else turn.instead_of
            attributes["admission.prefetched"] = turn.prefetched
            yield self._call(turn.policy, call, parent, attributes, "" if failure is None else failure.reason.value)

    def _call(self, policy: Policy, call: CallRecord, parent: int, attributes: dict[str, Value], error: str) -> Span:
        """The call of a worker, whose own span is its child."""
        worker = self._decision.plan.workers.get(policy.worker)
        name, kind, of_transport = _transport(worker)
        made = {**_policy_attributes(policy), **of_transport, **attributes}
        if error:
            made["error.type"] = error
        return Span(
            name=name,
            kind=kind,
            trace_id=self._trace.trace_id,
            span_id=self._trace.span_of(call.number),
            parent_id=parent,
            tracestate=self._trace.tracestate,
            started=self._offset + (call.called_at if call.looked_up_at is None else call.looked_up_at),
            ended=self._offset + self._end(call),
            attributes=made,
            error=error,
        )

    def _end(self, call: CallRecord) -> float:
        return self._decision.ended if call.answered_at is None else call.answered_at

    def _internal(
        self,
        name: str,
        parent: int,
        started: float,
        ended: float,
        attributes: dict[str, Value],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        return Span(
            name=name,
            kind=kind,
            trace_id=self._trace.trace_id,
            span_id=getrandbits(64) or 1,
            parent_id=parent,
            tracestate=self._trace.tracestate,
            started=self._offset + started,
            ended=self._offset + max(ended, started),
            attributes=attributes,
        )


def _policy_attributes(policy: Policy) -> dict[str, Value]:
    return {"admission.policy": policy.qualified_name, "admission.worker": policy.worker}


def _links(call: CallRecord) -> tuple[SpanLink, ...]:
    """A link to the call of another review whose answer this one shared."""
    parts = call.shared_with.split("-")
    return (SpanLink(parts[1], int(parts[2], 16)),) if len(parts) > 2 else ()  # noqa: PLR2004 - VERSION-TRACE-SPAN-FLAGS


def _transport(worker: Worker | None) -> tuple[str, SpanKind, dict[str, Value]]:
    """Name, kind and attributes of a call, by OpenTelemetry's conventions for its transport."""
    if worker is None:
        return "call", SpanKind.CLIENT, {}
    if worker.webhook is not None:
        url = worker.address
        host: dict[str, Value] = {"http.request.method": "POST", "url.full": shortened(url.partition("?")[0])}
        return "POST", SpanKind.CLIENT, host | _server(urlsplit(url).netloc.rpartition("@")[2])
    if worker.queue is not None:
        stream = worker.queue.stream
        made: dict[str, Value] = {
            "messaging.system": "redis",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": stream,
        }
        return f"send {stream}", SpanKind.PRODUCER, made
    if worker.hook is not None:
        path = worker.hook.path
        return f"run {path.rpartition('/')[2]}", SpanKind.INTERNAL, {"process.executable.path": shortened(path)}
    target = worker.grpc.target if worker.grpc is not None else ""
    rpc: dict[str, Value] = {"rpc.system.name": "grpc", "rpc.method": "admission.worker.v1.Worker/Review"}
    return "admission.worker.v1.Worker/Review", SpanKind.CLIENT, rpc | _server(target.rpartition("/")[2])


def _server(address: str) -> dict[str, Value]:
    """``server.address`` and ``server.port`` of HOST:PORT; of a list or a socket, the whole as the address."""
    host, _, port = address.rpartition(":")
    if host and port.isascii() and port.isdigit() and "," not in host:
        return {"server.address": shortened(host.strip("[]")), "server.port": int(port)}
    return {"server.address": shortened(address)} if address else {}
