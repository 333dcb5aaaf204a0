"""``documents.*``: the policy gets the document byte for byte, and the uid and the trace context with it."""

# ruff: noqa: PLR2004 - numbers in an expectation are the expectation

from typing import Any

from worker_conformance.check import Section, proto, readme
from worker_conformance.findings import NotCheckableError, expect, shown
from worker_conformance.policy_calls import echo
from worker_conformance.review_stream import calls
from worker_conformance.subject import Subject

section = Section("documents")

ODD: tuple[str, ...] = (
    "{}",
    ' {\n\t"object" : { } }\r\n ',
    '{"object":{"a":1,"a":2},"object":{"b":3}}',
    '{"n":[9007199254740993,1e400,-0,1.0,1E5,0.1e-7,123456789012345678901234567890]}',
    '{"object":{"\u00e4\u4e16\U0001f600":"\u2028\u2029\ufeff\x7f","escaped":"\\u00e4\\ud83d\\ude00\\/\\\\\\"\\n\\u0000"}}',
    '{"z":1,"a":2,"m":3,"10":4,"9":5,"__proto__":{"x":1},"constructor":null,"":6}',
    '{"object":{"empty":[[],{},null,false,""]},"oldObject":null,"unknownMember":[1]}',
)
"""Documents that change when a worker parses and encodes them again."""


@section.check(
    "bytes-unaltered",
    "The policy gets the document's bytes unaltered.",
    readme("the message is the document, byte for byte"),
    probes="echo",
)
async def bytes_unaltered(worker: Subject) -> None:
    """White space, order, duplicate members, numbers, escapes."""
    for text in ODD:
        outcome = await worker.client.review(echo(text.encode()))
        right = outcome.WhichOneof("verdict") == "deny" and outcome.deny.code == 422
        expect(right, f"a denial 422 for {text}", shown(outcome))
        expect(outcome.deny.message == text, f"the message {text!r}", repr(outcome.deny.message))


@section.check(
    "bytes-unaltered-on-the-stream",
    "On the stream the policy gets the bytes unaltered too, from the call and by index.",
    readme("the message is the document, byte for byte"),
    probes="echo",
    needs="stream",
)
async def bytes_unaltered_on_the_stream(worker: Subject) -> None:
    """The same documents."""
    stream = worker.client.stream()
    own = calls(echo(text.encode()) for text in ODD)
    shared = calls((echo(None, index=place) for place in range(len(ODD))), first=len(ODD) + 1)
    await stream.send([*own, *shared], documents=[text.encode() for text in ODD])
    outcomes = await stream.rest()
    for number, text in enumerate([*ODD, *ODD], start=1):
        found = outcomes[number].deny.message if number in outcomes else None
        expect(found == text, f"the message {text!r} for id {number}", repr(found))


@section.check(
    "uid",
    "The policy gets the uid, for its logs.",
    proto("The AdmissionRequest's uid, for logs."),
    probes="echo",
)
async def uid(worker: Subject) -> None:
    """With and without one, by Review and on the stream."""
    for uid in ("705ab4f5-6393-11e8-b7cc-42010a800002", "", "\u00e4"):
        for outcome in await _both(worker, uid=uid):
            found = outcome.audit_annotations.get("uid")
            expect(found == uid, f"the uid {uid!r} in the annotation `uid`", shown(outcome))


@section.check(
    "trace-context",
    "The policy runs in the trace of the gateway.",
    readme("name the parent of the policy's span"),
    probes="echo",
)
async def trace_context(worker: Subject) -> None:
    """The same trace; the span may be a new one. As metadata on Review, as a field on the stream."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    sent = f"00-{trace}-00f067aa0ba902b7-01"
    found = [one.audit_annotations.get("traceparent", "") for one in await _both(worker, traceparent=sent)]
    if not any(found):
        raise NotCheckableError("the policy gets no trace context: the worker runs without OpenTelemetry")
    for context in found:
        expect(context.startswith(f"00-{trace}-"), f"the trace {trace} in the annotation `traceparent`", repr(context))


@section.check(
    "no-trace-context",
    "Without a trace context, or with an invalid one, the policy still answers, in no earlier trace.",
    proto("Empty: not traced."),
    probes="echo",
)
async def no_trace_context(worker: Subject) -> None:
    """One call's trace context must not remain for the next call."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4737"
    await _both(worker, traceparent=f"00-{trace}-00f067aa0ba902b7-01")
    for broken in ("", "garbage", "00-00000000000000000000000000000000-0000000000000000-00"):
        for outcome in await _both(worker, traceparent=broken):
            expect(outcome.WhichOneof("verdict") == "deny", f"an answer with traceparent {broken!r}", shown(outcome))
            found = outcome.audit_annotations.get("traceparent", "")
            expect(trace not in found, f"no earlier trace with traceparent {broken!r}", repr(found))


async def _both(worker: Subject, **fields: Any) -> list[Any]:
    """The outcomes of probe-echo by Review, and by ReviewStream if the worker has it."""
    call = echo({"name": "a"}, **fields)
    metadata = {"traceparent": call.traceparent} if call.traceparent else {}
    outcomes = [await worker.client.review(call, metadata=metadata)]
    if worker.has_stream:
        stream = worker.client.stream()
        await stream.send(calls([call]))
        outcomes += (await stream.rest()).values()
        expect(len(outcomes) == 2, "an outcome on the stream", "none")
    return outcomes
