"""``review.*``: one policy call, and everything that can be wrong with it. The worker answers, and goes on serving."""

import asyncio

import grpc

from worker_conformance.check import Section, proto, readme
from worker_conformance.client import WORKER
from worker_conformance.findings import BrokenRuleError, expect, shown
from worker_conformance.policy_calls import MUTATING, VALIDATING, echo, first_phase, policy_call, probe
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.subject import Subject
from worker_conformance.unknown_fields import UNKNOWN_FIELDS, nested, with_unknown_fields

section = Section("review")

UNKNOWN_POLICY = worker_pb2.FAILURE_REASON_UNKNOWN_POLICY
INVALID_SETTINGS = worker_pb2.FAILURE_REASON_INVALID_SETTINGS

GARBAGE = (b"\xff\xff\xff\xff\xff", b"\x0a\x7f", b"\x0a\x05\x0a\x7fabc")
"""Not protobuf: a tag without an end, a field that is longer than its message, and the same one level deeper."""

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def fails(worker: Subject, call: worker_pb2.PolicyCall, what: str, reason: int | None = None) -> None:
    """Expect a call to fail, with this reason if one is given."""
    outcome = await worker.client.review(call)
    expect(outcome.WhichOneof("verdict") == "failure", f"a failure for {what}", shown(outcome))
    expect(outcome.failure.message, f"a message in the failure for {what}", shown(outcome))
    if reason is not None:
        name = worker_pb2.FailureReason.Name(reason)
        expect(outcome.failure.reason == reason, f"the reason {name} for {what}", shown(outcome))


@section.check(
    "unknown-policy",
    "A call of an unknown policy fails with UNKNOWN_POLICY.",
    proto("For a policy that it does not hold the worker answers"),
)
async def unknown_policy(worker: Subject) -> None:
    """In both phases, and with an empty name."""
    for phase in (MUTATING, VALIDATING):
        for name in ("no-such-policy", "", "no/such policy\n"):
            await fails(worker, policy_call(name, phase=phase), f"policy {name!r}", UNKNOWN_POLICY)


@section.check(
    "unset-phase",
    "A call with an unset or unknown phase fails.",
    proto("Not set. A receiver treats it as an error."),
)
async def unset_phase(worker: Subject) -> None:
    """Phases 0 and 7: proto3 enums are open, so the worker receives both."""
    for ordinary in worker.some_calls(20):
        for phase in (0, 7):
            call = ordinary.call()
            call.phase = phase  # type: ignore[assignment]  # an open enum's number of the future
            await fails(worker, call, f"{ordinary.policy} in phase {phase}")


@section.check(
    "missing-document",
    "A call without a document fails, and so does a call with document_index on Review.",
    readme("a missing or unreadable document"),
)
async def missing_document(worker: Subject) -> None:
    """``PolicyCall.document_index`` is for the stream only."""
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
    "A call whose document is not a JSON object in UTF-8 fails.",
    readme("a missing or unreadable document"),
    probes="echo answer",
)
async def broken_document(worker: Subject) -> None:
    """For a policy that reads the bytes, and one that reads the object."""
    for document in BROKEN_DOCUMENTS:
        await fails(worker, echo(document), f"probe-echo with document {document!r}")
        await fails(worker, probe("answer", {"arm": "mutated"}, document), f"probe-answer with document {document!r}")


@section.check(
    "deep-document",
    "The worker answers a call whose document is nested 10,000 deep, and goes on serving.",
    proto("A gRPC status other than OK is a failure of the call and never a denial"),
    probes="echo answer",
)
async def deep_document(worker: Subject) -> None:
    """Any verdict will do. (The gateway itself accepts less depth.)"""
    for inside in ("[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000):
        document = f'{{"operation":"CREATE","object":{inside}}}'.encode()
        for call in (echo(document), probe("answer", {"arm": "mutated"}, document)):
            outcome = await worker.client.review(call)
            expect(outcome.WhichOneof("verdict"), "a verdict", shown(outcome))
    await worker.still_answers("documents nested 10,000 deep")


@section.check(
    "broken-settings",
    "A call whose settings are not a JSON object fails with INVALID_SETTINGS.",
    proto("The policy cannot use the settings after all."),
)
async def broken_settings(worker: Subject) -> None:
    """Review checks them itself, without an earlier ValidateSettings."""
    for policy in worker.description.policies:
        for text in (b"", b"{", b"[]", b"null", b'{"a":"\xff"}'):
            call = policy_call(policy.name, phase=first_phase(policy), settings=text)
            await fails(worker, call, f"{policy.name} with settings {text!r}", INVALID_SETTINGS)


@section.check(
    "invalid-settings",
    "A call with settings that ValidateSettings rejects fails with INVALID_SETTINGS.",
    readme("invalid settings"),
    probes="settings",
)
async def invalid_settings(worker: Subject) -> None:
    """Rejected by the author's own check, and by the type."""
    for settings in ({"odd": 2}, {"odd": "x"}, {}, {"odd": 1, "more": 1}):
        await fails(worker, probe("settings", settings), f"probe-settings with {settings}", INVALID_SETTINGS)


@section.check(
    "unset-call",
    "A ReviewRequest without a call gets a failure or a gRPC status.",
    proto("Required. ``PolicyCall.document_index``"),
)
async def unset_call(worker: Subject) -> None:
    """Never a verdict."""
    try:
        answer = await worker.client.call(WORKER + "Review", b"", worker_pb2.ReviewResponse.FromString)
    except grpc.aio.AioRpcError as error:
        _is_about_the_call(error, "an empty ReviewRequest")
        return
    expect(answer.outcome.WhichOneof("verdict") in {"failure", None}, "a failure or a status", shown(answer))


@section.check(
    "unreadable-message",
    "Bytes that are not protobuf end their RPC with a gRPC status; the worker goes on serving.",
    readme("an unreadable message"),
)
async def unreadable_message(worker: Subject) -> None:
    """All three unary RPCs."""
    for method in ("Describe", "ValidateSettings", "Review"):
        for garbage in GARBAGE[:2]:
            try:
                await worker.client.call(WORKER + method, garbage, lambda read: worker_pb2.Failure())  # noqa: ARG005
            except grpc.aio.AioRpcError as error:
                _is_about_the_call(error, f"{garbage!r} to {method}")
            else:
                raise BrokenRuleError(f"a status for {garbage!r} to {method}", "an answer")
    await worker.still_answers("unreadable messages")


@section.check(
    "unknown-method",
    "A method that is not in the contract ends with UNIMPLEMENTED.",
    proto("that is a complete worker"),
)
async def unknown_method(worker: Subject) -> None:
    """A newer gateway may call one."""
    for method in (WORKER + "Explain", "/admission.worker.v2.Worker/Describe"):
        try:
            await worker.client.call(method, b"", worker_pb2.DescribeResponse.FromString)
        except grpc.aio.AioRpcError as error:
            expect(error.code() is grpc.StatusCode.UNIMPLEMENTED, f"UNIMPLEMENTED for {method}", error.code().name)
        else:
            raise BrokenRuleError(f"UNIMPLEMENTED for {method}", "an answer")


@section.check(
    "ignores-unknown-fields",
    "Review ignores unknown fields, which a newer gateway may send.",
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
    "ignores-uid-and-trace",
    "The outcome does not depend on the uid or the trace context.",
    proto("no verdict may depend on them"),
)
async def ignores_uid_and_trace(worker: Subject) -> None:
    """Malformed ones included. (``probe-echo`` is left out: it returns both in annotations.)"""
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
    "concurrent-calls",
    "Each of 400 concurrent calls gets its own outcome.",
    proto("Judges one document with one policy."),
    probes="echo",
)
async def concurrent_calls(worker: Subject) -> None:
    """Each document has a number, which its outcome must have too."""
    documents = [f'{{"name":"{number}"}}' for number in range(400)]
    outcomes = await asyncio.gather(*(worker.client.review(echo(text.encode())) for text in documents))
    for text, outcome in zip(documents, outcomes, strict=True):
        expect(outcome.deny.message == text, f"the outcome for {text}", shown(outcome))


@section.check(
    "concurrent-waits",
    "The worker judges 200 calls that each wait one second concurrently.",
    proto("Exactly one of these must be set"),
    probes="sleep",
    seconds=1,
)
async def concurrent_waits(worker: Subject) -> None:
    """One after another they take more than three minutes, far longer than --patience."""
    call = probe("sleep", {"seconds": 1, "token": ""}, {})
    outcomes = await asyncio.gather(*(worker.client.review(call, timeout=worker.patience + 1) for _ in range(200)))
    expect(all(one.WhichOneof("verdict") == "allow" for one in outcomes), "200 allows", shown(outcomes[-1]))


def same(one: worker_pb2.Outcome, other: worker_pb2.Outcome) -> bool:
    """Whether two outcomes are equal; the order of map entries does not matter."""
    return one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)


def _is_about_the_call(error: grpc.aio.AioRpcError, what: str) -> None:
    """Expect a status about the call; UNAVAILABLE and DEADLINE_EXCEEDED are about the worker."""
    of_the_worker = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
    expect(error.code() not in of_the_worker, f"a status such as INVALID_ARGUMENT for {what}", error.code().name)
