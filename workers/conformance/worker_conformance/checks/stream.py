"""``stream.*``: many calls over one stream. Each gets one outcome, as soon as it is known, equal to Review's."""

# ruff: noqa: PLR2004 - numbers in an expectation are the expectation

import asyncio

from worker_conformance.check import Section, proto, readme
from worker_conformance.checks.review import same
from worker_conformance.findings import expect, listed, shown
from worker_conformance.policy_calls import echo, probe, sleep
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.review_stream import Item, calls, cancels
from worker_conformance.subject import Subject
from worker_conformance.unknown_fields import UNKNOWN_FIELDS, nested, with_unknown_fields

section = Section("stream")

EACH_READY = proto("each as soon as it is ready: an outcome must not wait for another one.")
ANY_ORDER = proto("Outcomes come back by id, in any order and any grouping")
HALF_CLOSE = proto("When the gateway half-closes, the worker answers the open calls and closes")

LONG = 600.0


@section.check(
    "equals-review",
    "Each outcome on the stream equals the outcome of Review.",
    proto("The answer, exactly as ``Review`` would have given it."),
    needs="stream",
)
async def equals_review(worker: Subject) -> None:
    """All ordinary calls in one message."""
    ordinary = worker.some_calls(100)
    stream = worker.client.stream()
    await stream.send(calls(one.call() for one in ordinary))
    outcomes = await stream.rest()
    for number, one in enumerate(ordinary, start=1):
        alone = await worker.client.review(one.call())
        found = outcomes.get(number)
        right = found is not None and same(found, alone)
        expect(right, f"for {one.label} the outcome of Review: {shown(alone)}", shown(found))


@section.check(
    "fast-overtakes-slow",
    "The worker answers a fast call while a slow call of the same message is open.",
    EACH_READY,
    probes="sleep echo",
    needs="stream",
)
async def fast_overtakes_slow(worker: Subject) -> None:
    """And a fast call of a later message."""
    stream = worker.client.stream()
    await stream.send(calls([sleep(LONG), echo({"name": "fast"})]))
    await stream.until(2)
    await stream.send(calls([echo({"name": "later"})], first=3))
    await stream.until(3)
    await stream.send(cancels(1))
    await stream.rest()


@section.check(
    "order-is-free",
    "Calls that wait for different times are answered in any order, each once.",
    ANY_ORDER,
    probes="sleep",
    needs="stream",
)
async def order_is_free(worker: Subject) -> None:
    """Sent in the order slow, faster, fastest."""
    stream = worker.client.stream()
    await stream.send(calls(sleep(0.5 - number / 20) for number in range(10)))
    outcomes = await stream.rest()
    allowed = sorted(number for number, one in outcomes.items() if one.WhichOneof("verdict") == "allow")
    expect(
        allowed == list(range(1, 11)) and not stream.twice, "ten allows, each once", f"{allowed}, twice: {stream.twice}"
    )


@section.check(
    "thousand-calls",
    "A message with 1,000 calls gets 1,000 outcomes, one for each id.",
    proto("Answers many policy calls over one stream, at a fraction of the cost. Each message is a batch."),
    probes="echo",
    needs="stream",
)
async def thousand_calls(worker: Subject) -> None:
    """Each document has the id of its call."""
    stream = worker.client.stream()
    await stream.send(calls(echo({"name": str(number)}) for number in range(1, 1001)))
    outcomes = await stream.rest()
    expect(
        len(outcomes) == 1000 and not stream.twice,
        "1,000 outcomes, each once",
        f"{len(outcomes)}, twice: {listed(stream.twice[:9])}",
    )
    wrong = [number for number, one in outcomes.items() if one.deny.message != f'{{"name":"{number}"}}']
    expect(not wrong, "for each id its own document", f"others for ids {listed(wrong[:9])}")


@section.check(
    "grouping-is-free",
    "300 calls in 300 messages get the same outcomes as in one message.",
    ANY_ORDER,
    probes="echo",
    needs="stream",
)
async def grouping_is_free(worker: Subject) -> None:
    """One call in each message, without a wait between them."""
    stream = worker.client.stream()
    for number in range(1, 301):
        await stream.send(calls([echo({"name": str(number)})], first=number))
    outcomes = await stream.rest()
    right = [number for number, one in outcomes.items() if one.deny.message == f'{{"name":"{number}"}}']
    expect(
        len(right) == 300 and not stream.twice,
        "300 outcomes, one for each id, with its own document",
        f"{len(right)} of {len(outcomes)}",
    )


@section.check(
    "shared-documents",
    "A document index refers to the documents of the call's own message.",
    proto("A document that several policies share is sent once."),
    probes="echo",
    needs="stream",
)
async def shared_documents(worker: Subject) -> None:
    """Two messages with different documents at the same index, and a call with its own document."""
    stream = worker.client.stream()
    await stream.send(
        calls([echo(None, index=1), echo(None, index=0), echo(None, index=1), echo(b'{"own":1}')]),
        [b'{"a":0}', b'{"a":1}'],
    )
    await stream.send(calls([echo(None, index=0)], first=5), [b'{"b":0}'])
    outcomes = await stream.rest()
    found = {number: one.deny.message for number, one in sorted(outcomes.items())}
    expected = {1: '{"a":1}', 2: '{"a":0}', 3: '{"a":1}', 4: '{"own":1}', 5: '{"b":0}'}
    expect(found == expected, str(expected), str(found))


@section.check(
    "invalid-index",
    "A call with a document index that does not exist fails; the other calls do not.",
    readme("a document index that does not exist"),
    probes="echo",
    needs="stream",
)
async def invalid_index(worker: Subject) -> None:
    """One past the last, the largest number, and an index of the previous message."""
    stream = worker.client.stream()
    await stream.send(calls([echo(None, index=1), echo(None, index=2**32 - 1), echo(None, index=0)]), [b"{}"])
    await stream.send(calls([echo(None, index=0), echo(None)], first=4))
    outcomes = await stream.rest()
    arms = {number: one.WhichOneof("verdict") for number, one in sorted(outcomes.items())}
    expected = {1: "failure", 2: "failure", 3: "deny", 4: "failure", 5: "failure"}
    expect(arms == expected, str(expected), str(arms))


@section.check(
    "duplicate-id",
    "Two calls with the same open id get one failure for both.",
    readme("the first call with it is dropped, and both get one failure"),
    probes="sleep echo",
    needs="stream",
)
async def duplicate_id(worker: Subject) -> None:
    """The gateway could take the verdict of one for the other's."""
    stream = worker.client.stream()
    await stream.send(calls([sleep(LONG), echo({"name": "2"})]))
    await stream.until(2)
    await stream.send(calls([echo({"name": "intruder"})]))
    outcome = (await stream.until(1))[1]
    expect(outcome.WhichOneof("verdict") == "failure", "a failure for the id that was sent twice", shown(outcome))
    await stream.rest()
    expect(not stream.twice, "one outcome for both", f"more for ids {stream.twice}")


@section.check(
    "unknown-cancel",
    "The worker ignores a cancel of an id that is not open.",
    proto("The worker ignores an unknown id."),
    needs="stream",
)
async def unknown_cancel(worker: Subject) -> None:
    """Before, between and after."""
    await _has_no_effect(worker, cancels(7, 8, 2**64 - 1))


@section.check(
    "empty-batch", "The worker ignores a message without items.", proto("A batch from the gateway."), needs="stream"
)
async def empty_batch(worker: Subject) -> None:
    """With and without documents."""
    await _has_no_effect(worker, [])


@section.check(
    "empty-item",
    "The worker ignores an item that is neither a call nor a cancel.",
    readme("an item without call or cancel, a cancel of an unknown id"),
    needs="stream",
)
async def empty_item(worker: Subject) -> None:
    """A newer contract may have other items."""
    await _has_no_effect(worker, [Item(id=9), Item()])


@section.check(
    "empty-call",
    "An empty call on the stream fails.",
    proto("For a policy that it does not hold the worker answers"),
    needs="stream",
)
async def empty_call(worker: Subject) -> None:
    """It names no policy."""
    stream = worker.client.stream()
    await stream.send(calls([worker_pb2.PolicyCall()]))
    outcome = (await stream.rest()).get(1)
    expect(outcome is not None and outcome.WhichOneof("verdict") == "failure", "a failure for id 1", shown(outcome))


@section.check(
    "unknown-fields",
    "ReviewStream ignores unknown fields, which a newer gateway may send.",
    proto("Fields unknown to the receiver are ignored."),
    needs="stream",
)
async def unknown_fields(worker: Subject) -> None:
    """In the message, the item and the call."""
    ordinary = worker.some_calls(1)[0]
    call = nested(2 << 3 | 2, with_unknown_fields(ordinary.call()))
    item = nested(2 << 3 | 2, bytes([1 << 3, 5]) + call + UNKNOWN_FIELDS)
    stream = worker.client.stream()
    await stream.write(item + UNKNOWN_FIELDS)
    found, alone = (await stream.rest()).get(5), await worker.client.review(ordinary.call())
    expect(found is not None and same(found, alone), f"for id 5: {shown(alone)}", shown(found))


@section.check(
    "ids-have-64-bits",
    "Each id comes back as it was sent, up to 2^64 - 1.",
    proto("Chosen by the gateway, unique on this stream."),
    needs="stream",
)
async def ids_have_64_bits(worker: Subject) -> None:
    """0, and numbers beyond a double or a signed integer."""
    numbers = [0, 2**31, 2**32 + 1, 2**53 + 1, 2**63, 2**64 - 1]
    call, stream = worker.some_calls(1)[0].call(), worker.client.stream()
    await stream.send(Item(id=number, call=call) for number in numbers)
    found = sorted(await stream.rest())
    expect(found == numbers, listed(numbers), listed(found))


@section.check(
    "half-close",
    "After the gateway's half-close the worker answers the open calls and ends the stream with OK.",
    HALF_CLOSE,
    probes="sleep",
    needs="stream",
)
async def half_close(worker: Subject) -> None:
    """Calls of several messages."""
    stream = worker.client.stream()
    await stream.send(calls([sleep(0.4), sleep(0.2)]))
    await stream.send(calls([sleep(0.3)], first=3))
    outcomes = await stream.rest()
    arms = {number: one.WhichOneof("verdict") for number, one in sorted(outcomes.items())}
    expect(arms == dict.fromkeys((1, 2, 3), "allow"), "three allows", str(arms))


@section.check("no-calls", "A stream without a call ends with OK after the half-close.", HALF_CLOSE, needs="stream")
async def no_calls(worker: Subject) -> None:
    """Half-closed at once."""
    outcomes = await worker.client.stream().rest()
    expect(not outcomes, "no outcomes", f"outcomes for {sorted(outcomes)}")


@section.check(
    "parallel-streams",
    "Ten concurrent streams with the same ids get only their own outcomes.",
    proto("unique on this stream"),
    probes="echo",
    needs="stream",
)
async def parallel_streams(worker: Subject) -> None:
    """On one connection."""

    async def called(name: str) -> None:
        stream = worker.client.stream()
        for number in range(1, 31):
            await stream.send(calls([echo({"name": f"{name}-{number}"})], first=number))
        outcomes = await stream.rest()
        wrong = [n for n in range(1, 31) if n not in outcomes or outcomes[n].deny.message != f'{{"name":"{name}-{n}"}}']
        expect(not wrong and not stream.twice, f"on stream {name} its own documents", f"others for ids {wrong}")

    await asyncio.gather(*(called(f"s{number}") for number in range(10)))


@section.check(
    "unreadable-message",
    "Bytes that are not protobuf end their stream with a gRPC status; the worker goes on serving.",
    readme("an unreadable message"),
    needs="stream",
)
async def unreadable_message(worker: Subject) -> None:
    """Another stream of the same connection stays open."""
    stream, other = worker.client.stream(), worker.client.stream()
    call = worker.some_calls(1)[0].call()
    await other.send(calls([call]))
    await other.until(1)
    await stream.write(b"\xff\xff\xff\xff\xff")
    status = await stream.broken()
    expect(status.name not in {"OK", "UNAVAILABLE"}, "a status such as INVALID_ARGUMENT", status.name)
    await other.send(calls([call], first=2))
    await other.rest()
    expect(2 in other.outcomes, "an outcome on the other stream", "none")


@section.check(
    "panic",
    "A panic makes its call fail; the stream and its other calls go on.",
    readme("failure that names the policy and the type of the exception"),
    probes="panic echo sleep",
    needs="stream",
)
async def panic(worker: Subject) -> None:
    """Among other calls, in one message."""
    stream = worker.client.stream()
    await stream.send(
        calls(
            [
                sleep(0.3),
                probe("panic"),
                echo({}),
                probe("panic"),
                probe("misuse") if worker.has_policy("probe-misuse") else probe("panic"),
            ]
        )
    )
    outcomes = await stream.rest()
    arms = {number: one.WhichOneof("verdict") for number, one in sorted(outcomes.items())}
    expected = {1: "allow", 2: "failure", 3: "deny", 4: "failure", 5: "failure"}
    expect(arms == expected, str(expected), str(arms))


async def _has_no_effect(worker: Subject, items: list[Item]) -> None:
    """Expect items to have no effect, alone and around a call."""
    call, stream = worker.some_calls(1)[0].call(), worker.client.stream()
    await stream.send(items)
    await stream.send([*items, *calls([call]), *items])
    await stream.until(1)
    await stream.send(items, documents=[b"{}"])
    outcomes = await stream.rest()
    expect(sorted(outcomes) == [1], "one outcome, for id 1", f"outcomes for {sorted(outcomes)}")
