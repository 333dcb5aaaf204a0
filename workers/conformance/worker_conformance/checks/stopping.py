"""``stopping.*``: a worker that gets SIGTERM answers all calls, and then stops.

Each scenario starts its own worker; several checks read the result of one.
"""

import asyncio
import signal
from dataclasses import dataclass, field

import grpc

from worker_conformance.check import Section, readme
from worker_conformance.client import Client, Watch, connected
from worker_conformance.findings import BrokenRuleError, expect, shown
from worker_conformance.policy_calls import of_others, of_probes, sleep
from worker_conformance.processes import Launcher, Process
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.review_stream import ReviewStream, calls, cancels
from worker_conformance.subject import Subject

section = Section("stopping")

GRACE = 8.0
"""Seconds that ``--grace-period`` is by default."""

LONG = 600.0

HELD = 1.0
"""Seconds of the work that is open at the signal."""

OPEN = 4
"""The id of the stream's call that stays open until it is cancelled."""


@dataclass(kw_only=True)
class Shutdown:
    """What a worker did at a signal while calls were open.

    Attributes:
        statuses: those that a Watch reported, in order; None: it ended.
        unary: the outcome of a Review that was open at the signal.
        streamed: the outcome of a call on the stream that was open at the signal.
        late_unary: the outcome of a Review after the signal.
        late_streamed: the outcome of a call on the stream after the signal.
        stream_status: the status with which the stream ended.
        errors: what went wrong, step by step.
        code: the exit code; None: the process did not end.
        log: the end of the log.
    """

    statuses: list[str | None] = field(default_factory=list)
    unary: worker_pb2.Outcome = field(default_factory=worker_pb2.Outcome)
    streamed: worker_pb2.Outcome = field(default_factory=worker_pb2.Outcome)
    late_unary: worker_pb2.Outcome = field(default_factory=worker_pb2.Outcome)
    late_streamed: worker_pb2.Outcome = field(default_factory=worker_pb2.Outcome)
    stream_status: str = "no stream"
    errors: list[str] = field(default_factory=list)
    code: int | None = None
    log: str = ""


async def shutdown(launcher: Launcher) -> Shutdown:
    """Start a worker, call it, signal it, call it again, half-close, and wait for its end."""
    seen = Shutdown()
    async with (
        launcher.started(environment={"GRACE_PERIOD": "600"}) as process,
        connected(await process.target(), launcher.patience) as client,
    ):
        described = await client.describe()
        quick = next(iter([*of_probes(described), *of_others(described, set())])).call()
        waits = any(policy.name == "probe-sleep" for policy in described.policies)
        slow = sleep(HELD) if waits else quick
        watching = await _watched(client, seen)
        stream = client.stream() if launcher.has_stream else None
        unary = asyncio.ensure_future(client.review(slow, timeout=launcher.patience + HELD))
        if stream:
            await stream.send(calls([slow, quick]))
            await stream.until(2)
        await client.review(quick)
        # A call stays open until the late calls are sent. Otherwise the worker may stop before, on a slow machine.
        holding = client.reviewing(sleep(LONG), LONG) if waits else None
        if stream and waits:
            await stream.send(calls([sleep(LONG)], first=OPEN))
        await client.review(quick)
        process.signal(signal.SIGTERM)
        await _step(seen, "the Watch", _read_statuses(watching, seen, "NOT_SERVING"))
        await _step(seen, "late calls", _late(client, stream, quick, seen))
        if holding:
            holding.cancel()
        if stream and waits:
            await _step(seen, "a cancel", stream.send(cancels(OPEN)))
        await _step(seen, "an open Review", _taken(unary, seen))
        if stream:
            await _step(seen, "the stream", _left(stream, seen))
        await _step(seen, "the Watch's end", _read_statuses(watching, seen, None))
        await _step(seen, "the process", _ended(process, seen, launcher.patience))
        seen.log = process.tail()
    return seen


async def _watched(client: Client, seen: Shutdown) -> Watch:
    watching = client.watch()
    seen.statuses.append(await watching.status())
    return watching


async def _read_statuses(watching: Watch, seen: Shutdown, until: str | None) -> None:
    while seen.statuses[-1] not in {until, None}:
        seen.statuses.append(await watching.status())


async def _late(client: Client, stream: ReviewStream | None, quick: worker_pb2.PolicyCall, seen: Shutdown) -> None:
    if stream:
        await stream.send(calls([quick], first=3))
    seen.late_unary = await client.review(quick)
    if stream:
        seen.late_streamed = (await stream.until(3))[3]


async def _taken(unary: "asyncio.Future[worker_pb2.Outcome]", seen: Shutdown) -> None:
    seen.unary = await unary


async def _left(stream: ReviewStream, seen: Shutdown) -> None:
    try:
        outcomes = await stream.rest()
    finally:
        seen.stream_status = (await stream.status()).name
    seen.streamed = outcomes.get(1, worker_pb2.Outcome())


async def _ended(process: Process, seen: Shutdown, patience: float) -> None:
    seen.code = await process.exit_code(patience)


async def _step(seen: Shutdown, what: str, doing: object) -> None:
    """Do one step of the scenario. The checks judge its errors."""
    try:
        await doing  # type: ignore[misc]  # each caller passes a coroutine
    except BrokenRuleError as error:
        seen.errors.append(f"{what}: {error}")
    except grpc.aio.AioRpcError as error:
        seen.errors.append(f"{what}: {error.code().name}: {error.details()}")


def _also(seen: Shutdown) -> str:
    return "".join(f"; {error}" for error in seen.errors)


@section.check(
    "health-not-serving",
    "On SIGTERM, Watch reports NOT_SERVING, and then ends.",
    readme("health reports NOT_SERVING, also to each `Watch`, which then ends"),
    needs="command",
)
async def health_not_serving(worker: Subject) -> None:
    """Gateways then send their calls to other endpoints."""
    seen = await worker.scenario(shutdown)
    expect(
        seen.statuses == ["SERVING", "NOT_SERVING", None],
        "SERVING, NOT_SERVING, and the end",
        f"{seen.statuses}{_also(seen)}",
    )


@section.check(
    "answers-open-calls",
    "The worker answers the calls that are open at SIGTERM.",
    readme("finishes open ones, and exits 0."),
    probes="sleep",
    needs="command",
    seconds=1,
)
async def answers_open_calls(worker: Subject) -> None:
    """By Review, and on the stream."""
    seen = await worker.scenario(shutdown)
    expect(
        seen.unary.WhichOneof("verdict") == "allow", "an allow for the open Review", f"{shown(seen.unary)}{_also(seen)}"
    )
    streamed = seen.streamed.WhichOneof("verdict") == "allow"
    expect(
        streamed or not worker.has_stream,
        "an allow for the open call of the stream",
        f"{shown(seen.streamed)}{_also(seen)}",
    )


@section.check(
    "answers-late-calls",
    "The worker answers calls that arrive just after SIGTERM.",
    readme("the worker still answers new calls"),
    needs="command",
)
async def answers_late_calls(worker: Subject) -> None:
    """The gateway learns of it a moment later."""
    seen = await worker.scenario(shutdown)
    expect(seen.late_unary.WhichOneof("verdict"), "an outcome for a late Review", f"none{_also(seen)}")
    streamed = seen.late_streamed.WhichOneof("verdict")
    expect(streamed or not worker.has_stream, "an outcome for a late call of the stream", f"none{_also(seen)}")


@section.check(
    "ends-streams",
    "After SIGTERM, a stream that the gateway half-closes ends with OK.",
    readme("a stream that its peer has half-closed ends when no call is open on it"),
    needs="command stream",
)
async def ends_streams(worker: Subject) -> None:
    """No call on it is lost."""
    seen = await worker.scenario(shutdown)
    expect(seen.stream_status == "OK", "OK", f"{seen.stream_status}{_also(seen)}")


@section.check(
    "exits-0",
    "When no call is open, the process exits with code 0 before its grace period ends.",
    readme("0 stopped by a signal"),
    needs="command",
)
async def exits_0(worker: Subject) -> None:
    """While a connection is open. The grace period is ten minutes here."""
    seen = await worker.scenario(shutdown)
    expect(seen.code == 0, "exit code 0", f"{seen.code}{_also(seen)}\n{seen.log}")


async def idle_stream(launcher: Launcher) -> tuple[int, str]:
    """An open stream without an open call, which its client never half-closes."""
    async with (
        launcher.started(environment={"GRACE_PERIOD": "600"}) as process,
        connected(await process.target(), launcher.patience) as client,
    ):
        stream = client.stream()
        described = await client.describe()
        quick = next(iter([*of_probes(described), *of_others(described, set())])).call()
        await stream.send(calls([quick]))
        await stream.until(1)
        process.signal(signal.SIGINT)
        return await process.exit_code(launcher.patience), (await stream.broken()).name


@section.check(
    "closes-idle-streams",
    "A stream without open calls does not delay the end, even if the client does not half-close it.",
    readme("any other, when no call is open and no message has come for half a second"),
    needs="command stream",
)
async def closes_idle_streams(worker: Subject) -> None:
    """The grace period is ten minutes here. (The signal is SIGINT, which has the same effect.)"""
    code, status = await worker.scenario(idle_stream)
    expect((code, status) == (0, "OK"), "exit code 0, and the stream's end with OK", f"exit code {code}, {status}")


async def short_grace_period(launcher: Launcher) -> tuple[int, str]:
    """Work that takes ten minutes, and a grace period of one second."""
    async with (
        launcher.started(environment={"GRACE_PERIOD": "1"}) as process,
        connected(await process.target(), launcher.patience) as client,
    ):
        await client.describe()
        unary = client.reviewing(sleep(LONG), launcher.patience + GRACE)
        await client.review(sleep(0.2))
        process.signal(signal.SIGTERM)
        code = await process.exit_code(launcher.patience)
        return code, (await unary.code()).name


@section.check(
    "grace-period",
    "After the grace period the worker cancels open calls and exits with code 0.",
    readme("After `--grace-period` it cancels those that are still open."),
    probes="sleep",
    needs="command",
    seconds=1,
)
async def grace_period(worker: Subject) -> None:
    """No call keeps a worker from stopping."""
    code, status = await worker.scenario(short_grace_period)
    expect(code == 0, "exit code 0", f"exit code {code}")
    expect(status != "OK", "a status other than OK for the open call", status)


async def two_signals(launcher: Launcher) -> int:
    """Work that takes ten minutes, and two signals."""
    async with (
        launcher.started(environment={"GRACE_PERIOD": "600"}) as process,
        connected(await process.target(), launcher.patience) as client,
    ):
        watching = client.watch()
        await watching.status()
        call = client.reviewing(sleep(LONG), LONG)
        await client.review(sleep(0.2))
        process.signal(signal.SIGTERM)
        while await watching.status() == "SERVING":
            pass
        process.signal(signal.SIGTERM)
        code = await process.exit_code(launcher.patience)
        call.cancel()
        return code


@section.check(
    "second-signal",
    "A second signal ends the worker at once, with exit code 1.",
    readme("A second signal ends\nthe process at once, with exit code 1."),
    probes="sleep",
    needs="command",
)
async def second_signal(worker: Subject) -> None:
    """An operator need not wait for the grace period."""
    code = await worker.scenario(two_signals)
    expect(code == 1, "exit code 1", f"exit code {code}")


async def supervisor_ended(launcher: Launcher) -> int:
    """A supervised worker whose standard input ends."""
    async with (
        launcher.started(environment={"SUPERVISED": "1"}, open_input=True) as process,
        connected(await process.target(), launcher.patience) as client,
    ):
        await client.describe()
        process.end_input()
        return await process.exit_code(GRACE + launcher.patience)


@section.check(
    "supervised",
    "With ADMISSION_WORKER_SUPERVISED=1 the worker stops when its standard input ends.",
    readme("the worker also stops when its standard input ends."),
    needs="command",
)
async def supervised(worker: Subject) -> None:
    """It ends when the gateway ends. (Unsupervised workers have a standard input that has ended, and serve.)"""
    code = await worker.scenario(supervisor_ended)
    expect(code == 0, "exit code 0", f"exit code {code}")
