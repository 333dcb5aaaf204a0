"""``review.*``: one call, and all that can be wrong with it. The answer is decided, and the worker lives."""

import asyncio

import grpc

from worker_conformance.check import Section, proto, readme
from worker_conformance.client import WORKER
from worker_conformance.findings import BrokenRuleError, expect, shown
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.questions import MUTATING, VALIDATING, echo, first_phase, probe, question
from worker_conformance.subject import Subject
from worker_conformance.unknown import UNKNOWN_FIELDS, nested, with_unknown_fields

section = Section("review")

UNKNOWN_POLICY = worker_pb2.FAILURE_REASON_UNKNOWN_POLICY
INVALID_SETTINGS = worker_pb2.FAILURE_REASON_INVALID_SETTINGS

GARBAGE = (b"\xff\xff\xff\xff\xff", b"\x0a\x7f", b"\x0a\x05\x0a\x7fabc")
"""No protobuf: a tag that never ends, a field that is longer than its message, and the same one level deeper."""

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def fails(worker: Subject, call: worker_pb2.PolicyCall, what: str, reason: int | None = None) -> None:
    """See that a call is a failure, with this reason if one is given."""
    outcome = await worker.client.review(call)
    expect(outcome.WhichOneof("verdict") == "failure", f"a failure for {what}", shown(outcome))
    expect(outcome.failure.message, f"a message in the failure for {what}", shown(outcome))
    if reason is not None:
        name = worker_pb2.FailureReason.Name(reason)
        expect(outcome.failure.reason == reason, f"the reason {name} for {what}", shown(outcome))


@section.check(
    "unknown-policy",
    "A policy that the worker does not hold is a failure UNKNOWN_POLICY.",
    proto("For a policy that it does not hold the worker answers"),
)
async def unknown_policy(worker: Subject) -> None:
    """In both phases, and without a name."""
    for phase in (MUTATING, VALIDATING):
        for name in ("no-such-policy", "", "no/such policy\n"):
            await fails(worker, question(name, phase=phase), f"policy {name!r}", UNKNOWN_POLICY)


@section.check(
    "unset-phase",
    "A phase that is not said, or is unknown, is a failure.",
    proto("Not set. A receiver treats it as an error."),
)
async def unset_phase(worker: Subject) -> None:
    """Phases 0 and 7; enums are open, so both arrive."""
    for ordinary in worker.some_calls(20):
        for phase in (0, 7):
            call = ordinary.call()
            call.phase = phase  # type: ignore[assignment]  # an open enum's number of the future
            await fails(worker, call, f"{ordinary.policy} in phase {phase}")


@section.check(
    "missing-document",
    "A call without a document is a failure, as is a document_index on Review.",
    readme("a missing or unreadable document"),
)
async def missing_document(worker: Subject) -> None:
    """``PolicyCall.document_index`` and ``PolicyCall.timeout`` are not used on Review."""
    for ordinary in worker.some_calls(20):
        call = ordinary.call()
        call.ClearField("document")
        await fails(worker, call, f"{ordinary.policy} without a document")
        call.document_index = 0
        await fails(worker, call, f"{ordinary.policy} with document_index on Review")


BROKEN_DOCUMENTS = (
    b"",
    b" ",
    b"{",
    b'{"object":{"a":}}',
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe",
    b'{"object":{"a":"\xff"}}',
    b'{"a":1}}',
)


@section.check(
    "broken-document",
    "A document that is no JSON object in UTF-8 is a failure.",
    readme("a missing or unreadable document"),
    probes="echo answer",
)
async def broken_document(worker: Subject) -> None:
    """For one policy that takes its bytes, and one that reads its object."""
    for document in BROKEN_DOCUMENTS:
        await fails(worker, echo(document), f"probe-echo with document {document!r}")
        await fails(worker, probe("answer", {"arm": "mutated"}, document), f"probe-answer with document {document!r}")


@section.check(
    "deep-document",
    "A document nested 10,000 deep is answered, and the worker lives.",
    proto("A gRPC status other than OK is a failure of the call and never a denial"),
    probes="echo answer",
)
async def deep_document(worker: Subject) -> None:
    """Any verdict is right; a dead worker is not. (The gateway itself takes less depth.)"""
    for inside in ("[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000):
        document = f'{{"operation":"CREATE","object":{inside}}}'.encode()
        for call in (echo(document), probe("answer", {"arm": "mutated"}, document)):
            outcome = await worker.client.review(call)
            expect(outcome.WhichOneof("verdict"), "a verdict", shown(outcome))
    await worker.lives("documents nested 10,000 deep")


@section.check(
    "broken-settings",
    "Settings that are no JSON object are a failure INVALID_SETTINGS.",
    proto("The policy cannot use the settings after all."),
)
async def broken_settings(worker: Subject) -> None:
    """In Review itself, whatever ValidateSettings said before."""
    for policy in worker.description.policies:
        for text in (b"", b"{", b"[]", b"null", b'{"a":"\xff"}'):
            call = question(policy.name, phase=first_phase(policy), settings=text)
            await fails(worker, call, f"{policy.name} with settings {text!r}", INVALID_SETTINGS)


@section.check(
    "wrong-settings",
    "Settings that ValidateSettings would refuse are a failure INVALID_SETTINGS.",
    readme("invalid settings"),
    probes="settings",
)
async def wrong_settings(worker: Subject) -> None:
    """An author's own check, and a type."""
    for settings in ({"odd": 2}, {"odd": "x"}, {}, {"odd": 1, "more": 1}):
        await fails(worker, probe("settings", settings), f"probe-settings with {settings}", INVALID_SETTINGS)


@section.check(
    "unset-call", "A ReviewRequest without a call is no verdict.", proto("Required. ``PolicyCall.document_index``")
)
async def unset_call(worker: Subject) -> None:
    """A failure or a status."""
    try:
        answer = await worker.client.call(WORKER + "Review", b"", worker_pb2.ReviewResponse.FromString)
    except grpc.aio.AioRpcError as error:
        _is_decided(error, "an empty ReviewRequest")
        return
    expect(answer.outcome.WhichOneof("verdict") in {"failure", None}, "a failure or a status", shown(answer))


@section.check(
    "unreadable-message",
    "Bytes that are no protobuf end their call with a status, and nothing else.",
    readme("an unreadable message"),
)
async def unreadable_message(worker: Subject) -> None:
    """All three unary calls."""
    for method in ("Describe", "ValidateSettings", "Review"):
        for garbage in GARBAGE[:2]:
            try:
                await worker.client.call(WORKER + method, garbage, lambda read: worker_pb2.Failure())  # noqa: ARG005
            except grpc.aio.AioRpcError as error:
                _is_decided(error, f"{garbage!r} to {method}")
            else:
                raise BrokenRuleError(f"a status for {garbage!r} to {method}", "an answer")
    await worker.lives("unreadable messages")


@section.check(
    "unknown-method", "A method that the contract does not have is UNIMPLEMENTED.", proto("that is a complete worker")
)
async def unknown_method(worker: Subject) -> None:
    """A newer gateway may try one."""
    for method in (WORKER + "Explain", "/admission.worker.v2.Worker/Describe"):
        try:
            await worker.client.call(method, b"", worker_pb2.DescribeResponse.FromString)
        except grpc.aio.AioRpcError as error:
            expect(error.code() is grpc.StatusCode.UNIMPLEMENTED, f"UNIMPLEMENTED for {method}", error.code().name)
        else:
            raise BrokenRuleError(f"UNIMPLEMENTED for {method}", "an answer")


@section.check(
    "ignores-unknown-fields",
    "Fields that a newer gateway sends do not change an outcome.",
    proto("Fields unknown to the receiver are ignored."),
)
async def ignores_unknown_fields(worker: Subject) -> None:
    """In the request, in the call, and in the timeout."""
    for ordinary in worker.some_calls(20):
        plain = await worker.client.review(ordinary.call())
        timeout = nested(8 << 3 | 2, UNKNOWN_FIELDS)
        request = nested(1 << 3 | 2, with_unknown_fields(ordinary.call()) + timeout) + UNKNOWN_FIELDS
        answer = await worker.client.call(WORKER + "Review", request, worker_pb2.ReviewResponse.FromString)
        expect(
            same(answer.outcome, plain), f"the same outcome of {ordinary.label}: {shown(plain)}", shown(answer.outcome)
        )


@section.check(
    "uid-and-trace-do-not-matter",
    "Whatever uid and trace context travel beside the document, the outcome is the same.",
    proto("no verdict may depend on them"),
)
async def uid_and_trace_do_not_matter(worker: Subject) -> None:
    """Also where they are absurd. (``probe-echo`` tells the uid in an annotation: that is its purpose.)"""
    for ordinary in worker.some_calls(20):
        if ordinary.policy == "probe-echo":
            continue
        plain = await worker.client.review(ordinary.call())
        for uid, trace in (
            ("705ab4f5-6393-11e8-b7cc-42010a800002", TRACE),
            ("\u00e4\n" * 200, "00-zz-"),
            ("x", "\u00e4"),
        ):
            call = ordinary.call()
            call.uid, call.traceparent = uid, trace
            metadata = {"traceparent": trace} if trace.isascii() else {}
            outcome = await worker.client.review(call, metadata=metadata)
            expect(same(outcome, plain), f"the same outcome of {ordinary.label}: {shown(plain)}", shown(outcome))


@section.check(
    "many-at-once",
    "400 calls at the same time each get their own answer.",
    proto("Judges one document with one policy."),
    probes="echo",
)
async def many_at_once(worker: Subject) -> None:
    """Each document has a number, and each answer must have the same."""
    documents = [f'{{"name":"{number}"}}' for number in range(400)]
    outcomes = await asyncio.gather(*(worker.client.review(echo(text.encode())) for text in documents))
    for text, outcome in zip(documents, outcomes, strict=True):
        expect(outcome.deny.message == text, f"the answer to {text}", shown(outcome))


@section.check(
    "sleeps-at-once",
    "200 calls that wait one second are answered together, not one after another.",
    proto("Exactly one of these must be set"),
    probes="sleep",
    seconds=1,
)
async def sleeps_at_once(worker: Subject) -> None:
    """One after another would be more than three minutes; the patience is far less."""
    call = probe("sleep", {"seconds": 1, "token": ""}, {})
    outcomes = await asyncio.gather(*(worker.client.review(call, timeout=worker.patience + 1) for _ in range(200)))
    expect(all(one.WhichOneof("verdict") == "allow" for one in outcomes), "200 allows", shown(outcomes[-1]))


def same(one: worker_pb2.Outcome, other: worker_pb2.Outcome) -> bool:
    """Whether two outcomes are equal, but for the order in which their maps were written."""
    return one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)


def _is_decided(error: grpc.aio.AioRpcError, what: str) -> None:
    """A status that says that the call was wrong; not that the worker has gone or never answers."""
    gone = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
    expect(error.code() not in gone, f"a decided status for {what}, such as INVALID_ARGUMENT", error.code().name)
