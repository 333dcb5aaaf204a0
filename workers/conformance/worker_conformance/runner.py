"""A run: which checks can run with this worker, in which order, and the result of each.

Checks run concurrently, because most of them wait. Those that use all of a worker's capacity run alone, after the rest.
Those that start their own workers run beside all others, because they check another process.
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
from worker_conformance.policy_calls import of_others, of_probes
from worker_conformance.processes import START_PATIENCE, Launcher
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.results import Contract, Outcome, Report, Result, Worker, counted
from worker_conformance.subject import Subject
from worker_conformance.target import Target, reached

AT_ONCE = 6
"""Concurrent checks. They wait more than they compute; with more, the load of one would affect the others."""

ROUNDS = 4
"""A check's time limit as a multiple of the patience: it may wait several times."""

SCENARIO_SECONDS = 180.0
"""The time limit of a check that starts workers: it queues behind other scenarios, and each worker may start slowly."""

OnResult = Callable[[Result], None]


async def run(
    target: Target | None,
    launcher: Launcher | None,
    *,
    checks: Sequence[Check],
    calls: Calls,
    patience: float,
    on_result: OnResult,
) -> Report:
    """Run the checks.

    Args:
        target: the worker; None: start one.
        launcher: starts workers; None: no command was given.
        checks: the checks to run.
        calls: those of ``--calls``.
        patience: seconds for one wait.
        on_result: called with each result, in the order of ``checks``.

    Raises:
        StartError: the worker cannot be started or reached.
    """
    started, clock = dt.datetime.now(dt.UTC), asyncio.get_running_loop().time
    begun = clock()
    async with _subject(target, launcher, calls, patience) as worker:
        results = await _results(worker, checks, on_result)
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
    """The worker, started if a command was given, with its description."""
    async with AsyncExitStack() as stack:
        if target is None:
            if launcher is None:
                raise StartError("give --target ADDRESS, or the worker's command after --")
            target = await (await stack.enter_async_context(launcher.started())).target()
        await reached(target, patience)
        client = Client(await stack.enter_async_context(target.channel()), patience)
        warming_up = Client(client.channel, max(patience, START_PATIENCE))
        description = await _described(warming_up, target)
        calls_file.check_described(chosen, description)
        called = {call.policy for call in chosen.ordinary}
        calls = (*chosen.ordinary, *of_probes(description), *of_others(description, called))
        worker = Subject(
            target=target, client=client, description=description, calls=calls, patience=patience,
            has_stream=await _has_stream(warming_up), expected=chosen.expected, launcher=launcher,
        )  # fmt: skip
        if launcher:
            launcher.has_stream = worker.has_stream
        stack.push_async_callback(worker.close)
        yield worker


async def _described(client: Client, target: Target) -> worker_pb2.DescribeResponse:
    try:
        return await client.describe()
    except grpc.aio.AioRpcError as error:
        message = f"Describe at {target.address} ended with {error.code().name}: {error.details()}: is this a worker?"
        raise StartError(message) from None


async def _has_stream(client: Client) -> bool:
    """Whether the worker has ReviewStream. One without it "answers UNIMPLEMENTED ... and is complete"."""
    stream = client.stream()
    try:
        await stream.rest()
    except BrokenRuleError:
        return await stream.status() is not grpc.StatusCode.UNIMPLEMENTED
    return True


async def _results(worker: Subject, checks: Sequence[Check], on_result: OnResult) -> list[Result]:
    """All results, reported in the order of the checks."""
    limit = asyncio.Semaphore(AT_ONCE)
    results = {check.name: asyncio.get_running_loop().create_future() for check in checks}

    async def complete(check: Check) -> None:
        results[check.name].set_result(await result_of(check, worker))

    async def limited(check: Check) -> None:
        async with limit:
            await complete(check)

    async def run_short() -> None:
        await asyncio.gather(*(limited(check) for check in checks if not (check.alone or _is_long(check))))
        for check in checks:
            if check.alone:
                await complete(check)

    async def report() -> list[Result]:
        done = []
        for check in checks:
            done.append(await results[check.name])
            on_result(done[-1])
        return done

    async with asyncio.TaskGroup() as group:
        for check in checks:
            if _is_long(check):
                group.create_task(complete(check))
        group.create_task(run_short())
        reporting = group.create_task(report())
    return reporting.result()


def _is_long(check: Check) -> bool:
    """Whether it mostly waits for a process or for time to pass. Then it does not count for AT_ONCE."""
    return check.command or (bool(check.seconds) and not check.alone)


async def result_of(check: Check, worker: Subject) -> Result:
    """Run one check.

    Args:
        check: the check.
        worker: the worker.
    """
    clock = asyncio.get_running_loop().time
    begun = clock()
    seconds = SCENARIO_SECONDS if check.command else ROUNDS * worker.patience + check.seconds
    outcome: Outcome = "passed"
    details: dict[str, str] = {}
    try:
        _check_needs(check, worker)
        async with asyncio.timeout(seconds):
            await check.run(worker)
    except NotCheckableError as error:
        outcome, details = "skipped", {"reason": str(error)}
    except BrokenRuleError as error:
        outcome, details = "failed", {"expected": error.expected, "observed": error.observed}
    except grpc.aio.AioRpcError as error:
        observed = f"the gRPC status {error.code().name}: {error.details()}"
        outcome, details = "failed", {"expected": "an answer", "observed": observed}
    except TimeoutError:
        outcome, details = "failed", {"expected": f"the check to end within {seconds:g} s", "observed": "it still runs"}
    except (StartError, OSError) as error:
        outcome, details = (
            "failed",
            {"expected": "a worker that starts and accepts connections", "observed": str(error)},
        )
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        outcome, details = "broken", {"reason": f"it awaited a cancelled call: {error!r}"}
    except Exception as error:  # noqa: BLE001 - an error of the kit is reported, and ends no other check
        where = traceback.extract_tb(error.__traceback__)[-1]
        outcome, details = "broken", {"reason": f"{error!r} in {Path(where.filename).name}:{where.lineno}"}
    contract = Contract(source=check.contract.source, sentence=" ".join(check.contract.text.split()))
    return Result(
        name=check.name, sentence=check.sentence, contract=contract, outcome=outcome,
        seconds=round(clock() - begun, 3), **details,
    )  # fmt: skip


def _check_needs(check: Check, worker: Subject) -> None:
    """Check that the worker has what the check needs.

    Raises:
        NotCheckableError: it does not.
    """
    if check.command and worker.launcher is None:
        raise NotCheckableError("it needs the worker's command, after --")
    if check.stream and not worker.has_stream:
        raise NotCheckableError("the worker has no ReviewStream (UNIMPLEMENTED), which is optional")
    missing = [probe for probe in check.probes if not worker.has_policy(probe)]
    if missing:
        raise NotCheckableError("it needs probe policies: start the worker with --conformance")
