"""``stopping.*``: a worker that is told to stop loses no answer, and stops.

"To stop (SIGTERM, SIGINT) is to lame-duck first." Each scene starts a worker of its own; several checks look at what
happened in one.
"""

import asyncio
import signal
from dataclasses import dataclass, field

import grpc

from worker_conformance.check import Section, readme
from worker_conformance.client import Client, Watch, connected
from worker_conformance.conversation import Conversation, calls, cancels
from worker_conformance.findings import BrokenRuleError, expect, shown
from worker_conformance.launching import Launcher, Process
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.questions import of_others, of_probes, sleep
from worker_conformance.subject import Subject

section = Section("stopping")

GRACE = 8.0
"""Seconds that ``--grace-period`` is by default."""

LONG = 600.0

HELD = 1.0
"""Seconds of the work that is open when it is told to stop."""

OPEN = 4
"""The id, on the stream, of what is open until it is cancelled."""


@dataclass(kw_only=True)
class Farewell:
    """What a worker did that was told to stop while it had work.

    Attributes:
        told: the statuses that a Watch told, one after another; None: it ended.
        unary: the outcome of a Review that was open; likewise on the stream, and of calls that came after the signal.
        code: its exit code; None: it did not end.
        log: the end of its log.
    """

    told: list[str | None] = field(default_factory=list)
    unary: worker_pb2.Outcome = field(default_factory=worker_pb2.Outcome)
    streamed: worker_pb2.Outcome = field(default_factory=worker_pb2.Outcome)
    late_unary: worker_pb2.Outcome = field(default_factory=worker_pb2.Outcome)
    late_streamed: worker_pb2.Outcome = field(default_factory=worker_pb2.Outcome)
    stream_status: str = "no stream"
    errors: list[str] = field(default_factory=list)
    code: int | None = None
    log: str = ""


async def farewell(launcher: Launcher) -> Farewell:
    """Start a worker, give it work, tell it to stop, give it more, half-close, and watch it end."""
    seen = Farewell()
    async with (
        launcher.started(environment={"GRACE_PERIOD": "600"}) as process,
        connected(await process.target(), launcher.patience) as client,
    ):
        described = await client.describe()
        quick = next(iter([*of_probes(described), *of_others(described, set())])).call()
        waits = any(policy.name == "probe-sleep" for policy in described.policies)
        slow = sleep(HELD) if waits else quick
        watching = await _watched(client, seen)
        stream = client.stream() if launcher.holds_stream else None
        unary = asyncio.ensure_future(client.review(slow, timeout=launcher.patience + HELD))
        if stream:
            await stream.send(calls([slow, quick]))
            await stream.until(2)
        await client.review(quick)
        # Something stays open until what is late has been called, however slow the machine: else it might stop before.
        holding = client.reviewing(sleep(LONG), LONG) if waits else None
        if stream and waits:
            await stream.send(calls([sleep(LONG)], first=OPEN))
        await client.review(quick)
        process.signal(signal.SIGTERM)
        await _noted(seen, "the Watch", _hear(watching, seen, "NOT_SERVING"))
        await _noted(seen, "late calls", _late(client, stream, quick, seen))
        if holding:
            holding.cancel()
        if stream and waits:
            await _noted(seen, "a cancel", stream.send(cancels(OPEN)))
        await _noted(seen, "an open Review", _taken(unary, seen))
        if stream:
            await _noted(seen, "the stream", _left(stream, seen))
        await _noted(seen, "the Watch's end", _hear(watching, seen, None))
        await _noted(seen, "the process", _ended(process, seen, launcher.patience))
        seen.log = process.tail()
    return seen


async def _watched(client: Client, seen: Farewell) -> Watch:
    watching = client.watch()
    seen.told.append(await watching.status())
    return watching


async def _hear(watching: Watch, seen: Farewell, until: str | None) -> None:
    while seen.told[-1] not in {until, None}:
        seen.told.append(await watching.status())


async def _late(client: Client, stream: Conversation | None, quick: worker_pb2.PolicyCall, seen: Farewell) -> None:
    if stream:
        await stream.send(calls([quick], first=3))
    seen.late_unary = await client.review(quick)
    if stream:
        seen.late_streamed = (await stream.until(3))[3]


async def _taken(unary: "asyncio.Future[worker_pb2.Outcome]", seen: Farewell) -> None:
    seen.unary = await unary


async def _left(stream: Conversation, seen: Farewell) -> None:
    try:
        outcomes = await stream.rest()
    finally:
        seen.stream_status = (await stream.status()).name
    seen.streamed = outcomes.get(1, worker_pb2.Outcome())


async def _ended(process: Process, seen: Farewell, patience: float) -> None:
    seen.code = await process.exit_code(patience)


async def _noted(seen: Farewell, what: str, doing: object) -> None:
    """Do one step of the scene; what goes wrong is for the checks to judge."""
    try:
        await doing  # type: ignore[misc]  # each caller passes a coroutine
    except BrokenRuleError as error:
        seen.errors.append(f"{what}: {error}")
    except grpc.aio.AioRpcError as error:
        seen.errors.append(f"{what}: {error.code().name}: {error.details()}")


def _also(seen: Farewell) -> str:
    return "".join(f"; {error}" for error in seen.errors)


@section.check(
    "says-so",
    "On SIGTERM, Watch says NOT_SERVING, and then ends.",
    readme("health reports NOT_SERVING, also to each `Watch`, which then ends"),
    needs="command",
)
async def says_so(worker: Subject) -> None:
    """So that gateways send their calls elsewhere."""
    seen = await worker.scene(farewell)
    expect(
        seen.told == ["SERVING", "NOT_SERVING", None], "SERVING, NOT_SERVING, and the end", f"{seen.told}{_also(seen)}"
    )


@section.check(
    "answers-open-calls",
    "What is open when it is told to stop is answered.",
    readme("finishes open ones, and exits 0."),
    probes="sleep",
    needs="command",
    seconds=1,
)
async def answers_open_calls(worker: Subject) -> None:
    """By Review, and on the stream."""
    seen = await worker.scene(farewell)
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
    "What comes just after it was told to stop is answered.",
    readme("the worker still answers new calls"),
    needs="command",
)
async def answers_late_calls(worker: Subject) -> None:
    """The gateway needs a moment to hear of it."""
    seen = await worker.scene(farewell)
    expect(seen.late_unary.WhichOneof("verdict"), "an outcome for a late Review", f"none{_also(seen)}")
    streamed = seen.late_streamed.WhichOneof("verdict")
    expect(streamed or not worker.has_stream, "an outcome for a late call of the stream", f"none{_also(seen)}")


@section.check(
    "ends-streams",
    "A stream that the gateway half-closes then ends with OK.",
    readme("a stream that its peer has half-closed ends when no call is open on it"),
    needs="command stream",
)
async def ends_streams(worker: Subject) -> None:
    """Nothing on it is lost."""
    seen = await worker.scene(farewell)
    expect(seen.stream_status == "OK", "OK", f"{seen.stream_status}{_also(seen)}")


@section.check(
    "exits-0",
    "Then the process exits 0, long before its grace period is over.",
    readme("0 stopped by a signal"),
    needs="command",
)
async def exits_0(worker: Subject) -> None:
    """With a connection open. The grace period is ten minutes here."""
    seen = await worker.scene(farewell)
    expect(seen.code == 0, "exit code 0", f"{seen.code}{_also(seen)}\n{seen.log}")


async def abandoned(launcher: Launcher) -> tuple[int, str]:
    """A stream that is open, with nothing on it, and whose peer never half-closes."""
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
    "leaves-idle-streams",
    "A stream that nobody half-closes, with nothing on it, does not hold it up.",
    readme("any other, when no call is open and no message has come for half a second"),
    needs="command stream",
)
async def leaves_idle_streams(worker: Subject) -> None:
    """The grace period is ten minutes here. (Told by SIGINT, which is the same as SIGTERM.)"""
    code, status = await worker.scene(abandoned)
    expect((code, status) == (0, "OK"), "exit code 0, and the stream's end with OK", f"exit code {code}, {status}")


async def impatient(launcher: Launcher) -> tuple[int, str]:
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
    "What is open after the grace period is cancelled, and the exit code is 0.",
    readme("After `--grace-period` it cancels those that are still open."),
    probes="sleep",
    needs="command",
    seconds=1,
)
async def grace_period(worker: Subject) -> None:
    """Nothing holds a worker for ever."""
    code, status = await worker.scene(impatient)
    expect(code == 0, "exit code 0", f"exit code {code}")
    expect(status != "OK", "a status other than OK for the open call", status)


async def told_twice(launcher: Launcher) -> int:
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
    "A second signal ends it at once, with exit code 1.",
    readme("A second signal ends\nthe process at once, with exit code 1."),
    probes="sleep",
    needs="command",
)
async def second_signal(worker: Subject) -> None:
    """For an operator who does not want to wait."""
    code = await worker.scene(told_twice)
    expect(code == 1, "exit code 1", f"exit code {code}")


async def orphaned(launcher: Launcher) -> int:
    """A supervised worker whose supervisor goes away."""
    async with (
        launcher.started(environment={"SUPERVISED": "1"}, held=True) as process,
        connected(await process.target(), launcher.patience) as client,
    ):
        await client.describe()
        process.end_input()
        return await process.exit_code(GRACE + launcher.patience)


@section.check(
    "supervised",
    "With ADMISSION_WORKER_SUPERVISED=1 it stops when its standard input ends.",
    readme("the worker also stops when its standard input ends."),
    needs="command",
)
async def supervised(worker: Subject) -> None:
    """The gateway holds the other end; its end says that the gateway has died. (Others are started with a standard
    input that has ended, and go on.)
    """
    code = await worker.scene(orphaned)
    expect(code == 0, "exit code 0", f"exit code {code}")
