"""``load.*``: more than a worker can take at once. It refuses, and says so; it loses nothing, and stalls nobody."""

import asyncio

from worker_conformance.check import Section, proto, readme
from worker_conformance.conversation import calls
from worker_conformance.findings import expect, listed, shown
from worker_conformance.questions import echo, probe, sleep
from worker_conformance.subject import Subject

section = Section("load")

FLOOD = 6000
"""Calls at the same time: half as many again as ``--in-flight`` allows by default (4,096)."""


@section.check(
    "flood-loses-nothing",
    "Of 6,000 calls that wait, each gets exactly one outcome: an allow or a refusal.",
    readme("RESOURCE_EXHAUSTED on `Review`, a failure on the stream; never a stall"),
    probes="sleep",
    needs="stream alone",
    seconds=4,
)
async def flood_loses_nothing(worker: Subject) -> None:
    """Over two streams; afterwards all places are free again."""

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
        not wrong and "allow" in arms, "allows, and failures for what is too much", listed(sorted(map(str, set(arms))))
    )
    outcome = await worker.client.review(sleep(0))
    expect(outcome.WhichOneof("verdict") == "allow", "an allow after the flood", shown(outcome))


@section.check(
    "stalled-peer-stops-nobody",
    "A stream whose peer does not read holds up no other, and loses nothing.",
    readme("the bytes that wait for it are bounded; at the bound nothing more is read from it"),
    probes="flood echo",
    needs="stream alone",
)
async def stalled_peer_stops_nobody(worker: Subject) -> None:
    """48 MB of answers that nobody reads; in the end they are read after all."""
    async with worker.connected() as deaf, worker.connected() as other:
        stream = deaf.stream()
        await stream.send(calls([probe("flood", {"bytes": 2_000_000}, {})] * 24))
        for number in range(20):
            outcome = await other.review(echo({"name": str(number)}))
            expect(outcome.WhichOneof("verdict") == "deny", "an answer meanwhile", shown(outcome))
        lively = other.stream()
        await lively.send(calls([echo({})] * 20))
        await lively.rest()
        outcomes = await stream.rest()
    sizes = {len(one.deny.message) for one in outcomes.values()}
    right = sorted(outcomes) == list(range(1, 25)) and sizes == {2_000_000} and not stream.twice
    expect(right, "24 outcomes of 2,000,000 bytes", f"{len(outcomes)} of sizes {sorted(sizes)}")


@section.check(
    "stalled-peer-is-bounded",
    "From a peer that does not read, the worker stops reading, and goes on when it reads.",
    readme("the bytes that wait for it are bounded; at the bound nothing more is read from it"),
    probes="echo",
    needs="stream alone",
    seconds=5,
)
async def stalled_peer_is_bounded(worker: Subject) -> None:
    """Calls of 8 KB, whose answers are as large, until no more are taken."""
    document = {"name": "x" * 8192}
    async with worker.connected() as client:
        stream, sent = client.stream(), 0
        sending: asyncio.Future[None] | None = None
        while sending is None or not await _is_stuck(worker, sending):
            observed = f"{sent} calls of 8 KB were taken, and no answer was read"
            expect(sent < MOST_SENT, "a worker that reads no more", observed)
            message = calls([echo(document)] * BATCH, first=sent + 1)
            sending = asyncio.ensure_future(stream.send(message))
            sent += BATCH
        reading = asyncio.ensure_future(stream.until(*range(1, sent + 1)))
        await asyncio.gather(sending, reading)
        await stream.rest()


STALLED = 1.0
"""Seconds in which a worker that reads would have read a message of 1 MB."""

LOOKS = 10
"""Looks in that time; before each the worker has answered somebody else, so that it had time to read, too."""


async def _is_stuck(worker: Subject, sending: "asyncio.Future[None]") -> bool:
    """Whether a message stays unread by a worker that goes on: not by one, or a kit, that stands still."""
    for _ in range(LOOKS):
        await asyncio.wait({sending}, timeout=STALLED / LOOKS)
        if sending.done():
            return False
        await worker.client.describe()
    return not sending.done()


BATCH = 128
"""Calls in such a message."""

MOST_SENT = 16_384
"""Calls: four times the default of ``--in-flight``, with 128 MB of answers."""


@section.check(
    "mixed",
    "Unary calls, streams and health at the same time are all answered.",
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
