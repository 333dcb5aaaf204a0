"""A run: which checks can be made here, in which order and beside which others, and what came of each.

Checks run beside each other, for most of them wait. Those that take all that a worker has run alone, behind the rest.
Those that start workers of their own run beside everything: what they look at is another process.
"""

import asyncio
import datetime as dt
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc

from worker_conformance import VERSION, calls_file
from worker_conformance.calls_file import Calls
from worker_conformance.check import Check
from worker_conformance.client import Client
from worker_conformance.findings import BrokenRuleError, NotCheckableError, StartError
from worker_conformance.launching import START_PATIENCE, Launcher
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.questions import of_others, of_probes
from worker_conformance.results import Contract, Outcome, Report, Result, Worker, counted
from worker_conformance.subject import Subject
from worker_conformance.target import Target, reached

AT_ONCE = 6
"""Checks beside each other. They wait more than they compute; more of them would be told about each other's load."""

ROUNDS = 4
"""So many times its patience a check may take: several waits, of which each is within the patience."""

SCENES_SECONDS = 180.0
"""A check that starts workers may take so long: it queues behind others that do, and each may start slowly."""

Told = Callable[[Result], None]


async def run(
    target: Target | None,
    launcher: Launcher | None,
    *,
    checks: Sequence[Check],
    calls: Calls,
    patience: float,
    told: Told,
) -> Report:
    """Make the checks.

    Args:
        target: the worker; None: start one.
        launcher: starts workers; None: there is no command.
        checks: to be made.
        calls: chosen by whoever runs the kit.
        patience: seconds after which nothing is waited for any longer.
        told: called with each result as it is there, in the order of ``checks``.

    Raises:
        StartError: there is no worker that can be checked.
    """
    started, clock = dt.datetime.now(dt.UTC), asyncio.get_running_loop().time
    begun = clock()
    async with _subject(target, launcher, calls, patience) as worker:
        results = await _made(worker, checks, told)
    described = worker.description
    return Report(
        kit_version=VERSION,
        started_at=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=round(clock() - begun, 3),
        worker=Worker(
            address=worker.target.address,
            name=described.worker,
            version=described.version,
            policies=[policy.name for policy in described.policies],
            has_review_stream=worker.has_stream,
        ),
        summary=counted(results),
        checks=results,
    )


@asynccontextmanager
async def _subject(
    target: Target | None, launcher: Launcher | None, chosen: Calls, patience: float
) -> AsyncIterator[Subject]:
    """The worker, started if it has to be, and described."""
    async with AsyncExitStack() as stack:
        if target is None:
            if launcher is None:
                raise StartError("give --target ADDRESS, or the worker's command after --")
            target = await (await stack.enter_async_context(launcher.started())).target()
        await reached(target, patience)
        client = Client(await stack.enter_async_context(target.channel()), patience)
        warming_up = Client(client.channel, max(patience, START_PATIENCE))
        description = await _described(warming_up, target)
        calls_file.check_held(chosen, description)
        called = {call.policy for call in chosen.ordinary}
        calls = (*chosen.ordinary, *of_probes(description), *of_others(description, called))
        worker = Subject(
            target=target, client=client, description=description, calls=calls, patience=patience,
            has_stream=await _has_stream(warming_up), expected=chosen.expected, launcher=launcher,
        )  # fmt: skip
        if launcher:
            launcher.holds_stream = worker.has_stream
        stack.push_async_callback(worker.close)
        yield worker


async def _described(client: Client, target: Target) -> worker_pb2.DescribeResponse:
    try:
        return await client.describe()
    except grpc.aio.AioRpcError as error:
        message = f"Describe at {target.address} ended with {error.code().name}: {error.details()}: is it a worker?"
        raise StartError(message) from None


async def _has_stream(client: Client) -> bool:
    """Whether the worker has ReviewStream. One without it "answers UNIMPLEMENTED ... and is complete"."""
    stream = client.stream()
    try:
        await stream.rest()
    except BrokenRuleError:
        return await stream.status() is not grpc.StatusCode.UNIMPLEMENTED
    return True


async def _made(worker: Subject, checks: Sequence[Check], told: Told) -> list[Result]:
    """All results, told in the order of the checks."""
    gate = asyncio.Semaphore(AT_ONCE)
    results = {check.name: asyncio.get_running_loop().create_future() for check in checks}

    async def make(check: Check) -> None:
        results[check.name].set_result(await result_of(check, worker))

    async def gated(check: Check) -> None:
        async with gate:
            await make(check)

    async def calling() -> None:
        await asyncio.gather(*(gated(check) for check in checks if not (check.alone or _is_long(check))))
        for check in checks:
            if check.alone:
                await make(check)

    async def tell() -> list[Result]:
        made = []
        for check in checks:
            made.append(await results[check.name])
            told(made[-1])
        return made

    async with asyncio.TaskGroup() as group:
        for check in checks:
            if _is_long(check):
                group.create_task(make(check))
        group.create_task(calling())
        telling = group.create_task(tell())
    return telling.result()


def _is_long(check: Check) -> bool:
    """Whether it mostly waits, for a process or for time to pass: it needs no place beside the others."""
    return check.command or (bool(check.seconds) and not check.alone)


async def result_of(check: Check, worker: Subject) -> Result:
    """Make one check.

    Args:
        check: the check.
        worker: who is checked.
    """
    clock = asyncio.get_running_loop().time
    begun = clock()
    seconds = SCENES_SECONDS if check.command else ROUNDS * worker.patience + check.seconds
    outcome: Outcome = "passed"
    told: dict[str, str] = {}
    try:
        _can_be_made(check, worker)
        async with asyncio.timeout(seconds):
            await check.run(worker)
    except NotCheckableError as error:
        outcome, told = "skipped", {"reason": str(error)}
    except BrokenRuleError as error:
        outcome, told = "failed", {"expected": error.expected, "observed": error.observed}
    except grpc.aio.AioRpcError as error:
        observed = f"the gRPC status {error.code().name}: {error.details()}"
        outcome, told = "failed", {"expected": "an answer", "observed": observed}
    except TimeoutError:
        outcome, told = "failed", {"expected": "the end of the check", "observed": f"none after {seconds:g} s"}
    except (StartError, OSError) as error:
        outcome, told = "failed", {"expected": "a worker that starts and takes connections", "observed": str(error)}
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        outcome, told = "broken", {"reason": f"it awaited a call that it had cancelled: {error!r}"}
    except Exception as error:  # noqa: BLE001 - a mistake of the kit's is reported, and ends no other check
        where = traceback.extract_tb(error.__traceback__)[-1]
        outcome, told = "broken", {"reason": f"{error!r} in {Path(where.filename).name}:{where.lineno}"}
    contract = Contract(source=check.contract.source, sentence=" ".join(check.contract.text.split()))
    return Result(
        name=check.name, sentence=check.sentence, contract=contract, outcome=outcome,
        seconds=round(clock() - begun, 3), **told,
    )  # fmt: skip


def _can_be_made(check: Check, worker: Subject) -> None:
    """See that the worker has what the check needs.

    Raises:
        NotCheckableError: it has not.
    """
    if check.command and worker.launcher is None:
        raise NotCheckableError("it needs the worker's command, after --")
    if check.stream and not worker.has_stream:
        raise NotCheckableError("the worker has no ReviewStream (UNIMPLEMENTED), as it may")
    missing = [probe for probe in check.probes if not worker.holds(probe)]
    if missing:
        raise NotCheckableError("it needs probe policies: start the worker with --conformance")
