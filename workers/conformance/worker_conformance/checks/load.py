"""``load.*``: more calls than a worker can take. It rejects the excess, loses no call, and delays no other client."""

import asyncio

from worker_conformance.check import Section, proto, readme
from worker_conformance.findings import expect, listed, shown
from worker_conformance.policy_calls import echo, probe, sleep
from worker_conformance.review_stream import calls
from worker_conformance.subject import Subject

section = Section("load")

FLOOD = 6000
"""Concurrent calls: half as many again as ``--in-flight`` allows by default (4,096)."""


@section.check(
    "overload",
    "Each of 6,000 concurrent calls gets exactly one outcome: an allow, or a failure beyond --in-flight.",
    readme("RESOURCE_EXHAUSTED on `Review`, a failure on the stream; never a stall"),
    probes="sleep",
    needs="stream alone",
    seconds=4,
)
async def overload(worker: Subject) -> None:
    """Over two streams; then the worker accepts calls again."""

    async def flooded() -> dict[int, str | None]:
        async with worker.connected() as client:
            stream, half = client.stream(), FLOOD // 2
            for first in range(1, half, 500):
                await stream.send(calls([sleep(1)] * 500, first=first))
            outcomes = await stream.rest()
            expect(not stream.twice, "one outcome for each id", f"more for {listed(stream.twice[:9])}")
            expect(len(outcomes) == half, f"{half} outcomes", f"{len(outcomes)}")
            return {number: one.WhichOneof("verdict") for number, one in outcomes.items()}

    arms = [arm for found in await asyncio.gather(flooded(), flooded()) for arm in found.values()]
    wrong = set(arms) - {"allow", "failure"}
    expect(
        not wrong and "allow" in arms,
        "allows, and failures for the calls beyond --in-flight",
        listed(sorted(map(str, set(arms)))),
    )
    outcome = await worker.client.review(sleep(0))
    expect(outcome.WhichOneof("verdict") == "allow", "an allow after the overload", shown(outcome))


@section.check(
    "stalled-peer-is-isolated",
    "A stream whose client does not read delays no other stream, and loses no outcome.",
    readme("the bytes that wait for it are bounded; at the bound nothing more is read from it"),
    probes="flood echo",
    needs="stream alone",
)
async def stalled_peer_is_isolated(worker: Subject) -> None:
    """48 MB of answers, which the client reads only at the end."""
    async with worker.connected() as stalled, worker.connected() as other:
        stream = stalled.stream()
        await stream.send(calls([probe("flood", {"bytes": 2_000_000}, {})] * 24))
        for number in range(20):
            outcome = await other.review(echo({"name": str(number)}))
            expect(
                outcome.WhichOneof("verdict") == "deny", "an outcome on another connection meanwhile", shown(outcome)
            )
        lively = other.stream()
        await lively.send(calls([echo({})] * 20))
        await lively.rest()
        outcomes = await stream.rest()
    sizes = {len(one.deny.message) for one in outcomes.values()}
    right = sorted(outcomes) == list(range(1, 25)) and sizes == {2_000_000} and not stream.twice
    expect(right, "24 outcomes of 2,000,000 bytes", f"{len(outcomes)} of sizes {sorted(sizes)}")


@section.check(
    "stalled-peer-is-bounded",
    "The worker stops reading from a client that does not read, and continues when the client reads.",
    readme("the bytes that wait for it are bounded; at the bound nothing more is read from it"),
    probes="echo",
    needs="stream alone",
    seconds=5,
)
async def stalled_peer_is_bounded(worker: Subject) -> None:
    """Calls of 8 KB with answers of 8 KB, until the worker reads no more."""
    document = {"name": "x" * 8192}
    async with worker.connected() as client:
        stream, sent = client.stream(), 0
        sending: asyncio.Future[None] | None = None
        while sending is None or not await _is_stuck(worker, sending):
            observed = f"the worker read {sent} calls of 8 KB while the client read no answer"
            expect(sent < MOST_SENT, "a worker that stops reading", observed)
            message = calls([echo(document)] * BATCH, first=sent + 1)
            sending = asyncio.ensure_future(stream.send(message))
            sent += BATCH
        reading = asyncio.ensure_future(stream.until(*range(1, sent + 1)))
        await asyncio.gather(sending, reading)
        await stream.rest()


STALLED = 1.0
"""Seconds in which a worker that reads would have read a message of 1 MB."""

POLLS = 10
"""Polls in that time. Before each the worker answers a Describe, so it had time to read as well."""


async def _is_stuck(worker: Subject, sending: "asyncio.Future[None]") -> bool:
    """Whether the worker leaves a message unread while it answers other calls: the machine is not just slow."""
    for _ in range(POLLS):
        await asyncio.wait({sending}, timeout=STALLED / POLLS)
        if sending.done():
            return False
        await worker.client.describe()
    return not sending.done()


BATCH = 128
"""Calls in one message."""

MOST_SENT = 16_384
"""Calls: four times the default of ``--in-flight``, with 128 MB of answers."""


@section.check(
    "mixed",
    "The worker answers concurrent Review calls, streams and Describe.",
    proto("Answers many policy calls over one stream, at a fraction of the cost."),
    probes="echo sleep",
    needs="stream",
)
async def mixed(worker: Subject) -> None:
    """Over three connections."""

    async def used() -> None:
        async with worker.connected() as client:
            stream = client.stream()
            await stream.send(calls([*[echo({})] * 50, *[sleep(0.2)] * 50]))
            unary = [client.review(echo({"name": str(number)})) for number in range(50)]
            outcomes, answered, _ = await asyncio.gather(stream.rest(), asyncio.gather(*unary), client.describe())
            arms = [one.WhichOneof("verdict") for one in (*outcomes.values(), *answered)]
            right = sorted(map(str, arms)) == ["allow"] * 50 + ["deny"] * 100
            expect(right, "100 denials and 50 allows", listed(f"{arms.count(arm)} {arm}" for arm in set(arms)))

    await asyncio.gather(*(used() for _ in range(3)))
