"""``waiting.*``: deadlines and cancellation stop a policy's work; ``probe-cancelled`` shows it."""

# ruff: noqa: PLR2004 - numbers in an expectation are the expectation

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress

import grpc

from worker_conformance.check import Section, proto, readme
from worker_conformance.findings import BrokenRuleError, expect, shown
from worker_conformance.policy_calls import echo, sleep
from worker_conformance.review_stream import calls, cancels
from worker_conformance.subject import Subject

section = Section("waiting")

LONG = 600.0
"""Seconds of a sleep that must be cancelled: longer than any patience."""

CLOCKS = 0.005
"""Seconds by which the client's and the server's deadline may differ: gRPC sends it in milliseconds."""

TRIES = 3
"""Attempts to see the work stopped after its deadline."""


def _short(worker: Subject) -> float:
    """Seconds of a deadline: enough for a loaded machine, or a runtime that warms up, to begin the call.

    At most three tenths of the patience, so that the rest is left for the cancellation.
    """
    return min(2.0, 0.3 * worker.patience)


async def _is_stopped(worker: Subject, sleep_until: Callable[[str, float], Awaitable[None]]) -> None:
    """Expect the work to stop at its deadline.

    Work that never began is never cancelled, and the kit cannot see the difference. A loaded machine, or a runtime that
    warms up, may not begin in time, so each attempt gets more time.

    Args:
        worker: the worker.
        sleep_until: starts a sleep with this token and this deadline in seconds, and returns at the deadline.
    """
    for number in range(1, TRIES):
        token = _token()
        await sleep_until(token, number * _short(worker))
        with suppress(BrokenRuleError):
            await worker.was_cancelled(token, worker.patience / TRIES)
            return
    token = _token()
    await sleep_until(token, TRIES * _short(worker))
    await worker.was_cancelled(token)


def _begun(worker: Subject) -> float:
    """Seconds of a sleep that follows another call: when it is answered, the worker has begun the other call."""
    return min(1.0, 0.2 * worker.patience)


AFTER_THE_DEADLINE = proto("once it has passed, or the call is cancelled, the gateway drops the answer.")


def _token() -> str:
    return uuid.uuid4().hex


@section.check(
    "review-deadline",
    "At the gRPC deadline Review ends with DEADLINE_EXCEEDED, and the worker stops the work.",
    AFTER_THE_DEADLINE,
    probes="sleep cancelled",
)
async def review_deadline(worker: Subject) -> None:
    """The deadline of Review."""

    async def call(token: str, seconds: float) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        try:
            outcome = await worker.client.review(sleep(LONG, token), timeout=seconds)
        except grpc.aio.AioRpcError as error:
            # Both sides have the deadline: a server in Go resets the call then, and its reset (CANCEL) may arrive up
            # to a millisecond before this side's deadline.
            reset = error.code() is grpc.StatusCode.CANCELLED and clock() > deadline - CLOCKS
            observed = f"{error.code().name} {deadline - clock():g} s before the deadline: {error.details()}"
            expect(reset or error.code() is grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", observed)
        else:
            raise BrokenRuleError("DEADLINE_EXCEEDED", shown(outcome))

    await _is_stopped(worker, call)


@section.check(
    "review-ignores-timeout",
    "Review ignores the call's timeout field.",
    proto("``PolicyCall.document_index`` and ``PolicyCall.timeout`` are not used here."),
    probes="sleep",
)
async def review_ignores_timeout(worker: Subject) -> None:
    """A sleep that is longer than the field's value, and shorter than the deadline."""
    outcome = await worker.client.review(sleep(0.3, timeout=0.001))
    expect(outcome.WhichOneof("verdict") == "allow", "an allow", shown(outcome))


@section.check(
    "stream-timeout",
    "On the stream a call that exceeds its timeout gets a failure.",
    readme("failure on the stream; the gRPC status DEADLINE_EXCEEDED on `Review`"),
    probes="sleep",
    needs="stream",
)
async def stream_timeout(worker: Subject) -> None:
    """Without another message on the stream."""
    stream = worker.client.stream()
    await stream.send(calls([sleep(LONG, timeout=_short(worker))]))
    outcome = (await stream.until(1))[1]
    expect(outcome.WhichOneof("verdict") == "failure", "a failure", shown(outcome))
    expect(await stream.rest() and not stream.twice, "one outcome", f"more than one for ids {stream.twice}")


@section.check(
    "stream-timeout-stops-work",
    "On the stream the worker stops the work of a call that exceeds its timeout.",
    proto("how long the gateway waits for this outcome, counted from the message's arrival."),
    probes="sleep cancelled",
    needs="stream",
)
async def stream_timeout_stops_work(worker: Subject) -> None:
    """The stream stays open meanwhile."""
    stream, numbers = worker.client.stream(), itertools.count(1)

    async def call(token: str, seconds: float) -> None:
        await stream.send(calls([sleep(LONG, token, timeout=seconds)], first=next(numbers)))
        await asyncio.sleep(seconds)

    await _is_stopped(worker, call)
    await stream.rest()


@section.check(
    "stream-timeout-is-of-one-call",
    "The timeout of one call on the stream does not affect the others.",
    proto("an outcome must not wait for another one."),
    probes="sleep echo",
    needs="stream",
)
async def stream_timeout_is_of_one_call(worker: Subject) -> None:
    """One that exceeds its timeout, one with a longer timeout, one without."""
    stream = worker.client.stream()
    items = [
        sleep(LONG, timeout=0.2),
        sleep(0.6, timeout=worker.patience),
        sleep(0.6),
        echo({}, timeout=worker.patience),
    ]
    await stream.send(calls(items))
    outcomes = await stream.rest()
    arms = {number: outcome.WhichOneof("verdict") for number, outcome in sorted(outcomes.items())}
    expected = {1: "failure", 2: "allow", 3: "allow", 4: "deny"}
    expect(arms == expected, str(expected), str(arms))


@section.check(
    "review-cancel",
    "When a Review is cancelled, the worker stops its work.",
    AFTER_THE_DEADLINE,
    probes="sleep cancelled",
)
async def review_cancel(worker: Subject) -> None:
    """After a later call has been answered, so that the worker has begun it."""
    token = _token()
    async with worker.connected() as client:
        await client.describe()
        call = client.reviewing(sleep(LONG, token))
        await client.review(sleep(_begun(worker)))
        call.cancel()
        await worker.was_cancelled(token)


@section.check(
    "stream-cancel",
    "A cancel on the stream stops the work of its call.",
    proto("The gateway no longer waits for this id."),
    probes="sleep cancelled echo",
    needs="stream",
)
async def stream_cancel(worker: Subject) -> None:
    """And no other call's."""
    token, other, stream = _token(), _token(), worker.client.stream()
    await stream.send(calls([sleep(LONG, token), sleep(LONG, other), sleep(_begun(worker))]))
    await stream.until(3)
    await stream.send(cancels(1))
    await worker.was_cancelled(token)
    await stream.send(calls([echo({})], first=4))
    await stream.until(4)
    expect(2 not in stream.outcomes, "no outcome of the other sleep", shown(stream.outcomes.get(2, "")))
    await stream.send(cancels(2))
    await stream.rest()


@section.check(
    "cancelled-gets-no-outcome",
    "A cancelled call gets no outcome, and does not keep the stream open.",
    readme("A cancel stops the work, and no outcome is sent"),
    probes="sleep echo",
    needs="stream",
)
async def cancelled_gets_no_outcome(worker: Subject) -> None:
    """Cancelled in a later message, and in the call's own message."""
    stream = worker.client.stream()
    await stream.send(calls([sleep(LONG), sleep(LONG), echo({})]))
    await stream.until(3)
    await stream.send([*cancels(1, 2), *calls([sleep(LONG), echo({})], first=4), *cancels(4)])
    outcomes = await stream.rest()
    expect(sorted(outcomes) == [3, 5], "outcomes for ids 3 and 5", f"outcomes for {sorted(outcomes)}")


@section.check(
    "broken-stream",
    "When the stream breaks, the worker stops the work of all its open calls.",
    proto("when the stream breaks, every open call has failed."),
    probes="sleep cancelled",
    needs="stream",
)
async def broken_stream(worker: Subject) -> None:
    """The connection stays open."""
    tokens, stream = [_token(), _token()], worker.client.stream()
    await stream.send(calls([*(sleep(LONG, token) for token in tokens), sleep(_begun(worker))]))
    await stream.until(3)
    stream.breaks()
    for token in tokens:
        await worker.was_cancelled(token)


@section.check(
    "closed-connection",
    "When the connection closes, the worker stops the work of all its open calls.",
    proto("when the stream breaks, every open call has failed."),
    probes="sleep cancelled",
)
async def closed_connection(worker: Subject) -> None:
    """As when a gateway ends."""
    unary, streamed = _token(), _token()
    async with worker.connected() as client:
        await client.describe()
        call = client.reviewing(sleep(LONG, unary))
        if worker.has_stream:
            stream = client.stream()
            await stream.send(calls([sleep(LONG, streamed), sleep(_begun(worker))]))
            await stream.until(2)
        await client.review(sleep(_begun(worker)))
    call.cancel()
    await worker.was_cancelled(unary)
    if worker.has_stream:
        await worker.was_cancelled(streamed)
