"""``sizes.*``: messages up to the limit, and beyond it.

"``--message-bytes``: 41048576": twice the gateway's largest body (20 MB), and 1 MiB for the other fields.
"""

from contextlib import suppress

import grpc

from worker_conformance.check import Section, readme
from worker_conformance.findings import BrokenRuleError, expect, shown
from worker_conformance.policy_calls import echo, probe
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.review_stream import calls
from worker_conformance.subject import Subject

section = Section("sizes")

LIMIT = 41_048_576
BODY = 20_000_000
ROOM = 4096
"""Bytes for the other fields of a large message: name, version, tags. They need far fewer."""

MESSAGE_LIMIT = readme("the largest message, received or sent")
TOO_LARGE = readme("failure that names its size and the limit")


def _document(size: int) -> bytes:
    """A document of this size in bytes."""
    frame = b'{"operation":"CREATE","object":{"metadata":{"name":"big"},"data":{"blob":""}}}'
    at = frame.index(b'""') + 1
    return frame[:at] + b"x" * (size - len(frame)) + frame[at:]


@section.check(
    "large-document",
    "The worker judges a document of 20 MB, and returns it whole.",
    MESSAGE_LIMIT,
    probes="echo",
    needs="alone",
)
async def large_document(worker: Subject) -> None:
    """The gateway's largest body, in both directions."""
    document = _document(BODY)
    outcome = await worker.client.review(echo(document))
    expect(outcome.deny.message.encode() == document, "a message of 20,000,000 bytes, the document", shown(outcome))


@section.check(
    "large-object", "The worker returns an object of 20 MB whole.", MESSAGE_LIMIT, probes="answer", needs="alone"
)
async def large_object(worker: Subject) -> None:
    """``mutated`` of the largest object."""
    outcome = await worker.client.review(probe("answer", {"arm": "mutated"}, _document(BODY)))
    size = len(outcome.allow.object)
    expect(size > BODY - ROOM, "an object of some 20,000,000 bytes", f"{size} bytes: {shown(outcome)}")


@section.check(
    "large-on-the-stream",
    "Three calls on the stream share one document of 20 MB.",
    MESSAGE_LIMIT,
    probes="answer",
    needs="stream alone",
)
async def large_on_the_stream(worker: Subject) -> None:
    """The message has it once."""
    stream = worker.client.stream()
    called = probe("answer", {"arm": "deny-plainly"}, None, index=0)
    await stream.send(calls([called] * 3), documents=[_document(BODY)])
    outcomes = await stream.rest()
    right = sorted(outcomes) == [1, 2, 3] and all(one.deny.message == "denied" for one in outcomes.values())
    expect(right, "three denials", shown(list(map(shown, outcomes.values()))))


@section.check(
    "answer-near-the-limit",
    "The worker returns an answer just below the size limit whole.",
    MESSAGE_LIMIT,
    probes="flood",
    needs="alone",
)
async def answer_near_the_limit(worker: Subject) -> None:
    """4 KB below."""
    size = LIMIT - ROOM
    outcome = await worker.client.review(probe("flood", {"bytes": size}, {}))
    expect(len(outcome.deny.message) == size, f"a message of {size} bytes", shown(outcome))


@section.check(
    "answer-beyond-the-limit",
    "An answer beyond the size limit becomes a failure that names both sizes.",
    TOO_LARGE,
    probes="flood",
    needs="alone",
)
async def answer_beyond_the_limit(worker: Subject) -> None:
    """A failed RPC would hide the cause."""
    outcome = await worker.client.review(probe("flood", {"bytes": LIMIT + 1}, {}))
    _is_too_large(outcome)


@section.check(
    "answer-beyond-the-limit-on-the-stream",
    "On the stream an answer beyond the size limit fails only its own call.",
    TOO_LARGE,
    probes="flood answer",
    needs="stream alone",
)
async def answer_beyond_the_limit_on_the_stream(worker: Subject) -> None:
    """One stream serves many policies, so one of them must not end it."""
    stream = worker.client.stream()
    await stream.send(calls([probe("flood", {"bytes": LIMIT + 1}, {}), probe("answer", {"arm": "deny-plainly"}, {})]))
    outcomes = await stream.rest()
    expect(sorted(outcomes) == [1, 2], "two outcomes", f"outcomes for {sorted(outcomes)}")
    _is_too_large(outcomes[1])
    expect(outcomes[2].deny.message == "denied", "the other call's denial", shown(outcomes[2]))


@section.check(
    "batches-fit",
    "The worker divides many large answers on a stream into messages within the size limit.",
    MESSAGE_LIMIT,
    probes="flood",
    needs="stream alone",
)
async def batches_fit(worker: Subject) -> None:
    """Six of 9 MB, too much for one message."""
    stream = worker.client.stream()
    await stream.send(calls([probe("flood", {"bytes": 9_000_000}, {})] * 6))
    outcomes = await stream.rest()
    sizes = [len(one.deny.message) for one in outcomes.values()]
    expect(sizes == [9_000_000] * 6, "six messages of 9,000,000 bytes", f"sizes {sizes}")


@section.check(
    "request-beyond-the-limit",
    "The worker rejects a request beyond the size limit with a gRPC status, and goes on serving.",
    MESSAGE_LIMIT,
    probes="echo",
    needs="alone",
)
async def request_beyond_the_limit(worker: Subject) -> None:
    """By Review and by ReviewStream."""
    async with worker.connected() as client:
        try:
            outcome = await client.review(echo(_document(LIMIT + ROOM)))
        except grpc.aio.AioRpcError as error:
            late = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            expect(not late, "RESOURCE_EXHAUSTED", f"no answer within {worker.patience:g} s")
        else:
            raise BrokenRuleError("RESOURCE_EXHAUSTED", shown(outcome))
        if worker.has_stream:
            stream = client.stream()
            message = worker_pb2.ReviewStreamRequest(items=calls([echo(_document(LIMIT + ROOM))]))
            with suppress(BrokenRuleError):  # the stream may end before the whole message is written
                await stream.write(message.SerializeToString())
            status = await stream.broken()
            expect(status is not grpc.StatusCode.OK, "a stream that ends with RESOURCE_EXHAUSTED", status.name)
    await worker.still_answers("a request beyond the limit")


def _is_too_large(outcome: worker_pb2.Outcome) -> None:
    message = outcome.failure.message
    expect(outcome.WhichOneof("verdict") == "failure", "a failure", shown(outcome))
    digits = message.replace(",", "").replace("_", "")
    named = any(word.strip(".:;()").isdigit() and int(word.strip(".:;()")) > LIMIT // 2 for word in digits.split())
    expect(named, "a failure that names the sizes", shown(outcome))
