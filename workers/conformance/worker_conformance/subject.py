"""The worker that is checked, as the checks see it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from worker_conformance.client import Client, connected
from worker_conformance.expectations import ExpectedCall
from worker_conformance.findings import NotCheckableError, expect, shown
from worker_conformance.policy_calls import OrdinaryCall, probe
from worker_conformance.processes import Launcher
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.target import Target

_T = TypeVar("_T")

LOOK = 0.05
"""Seconds between two polls of a state without events; each costs the worker one small call."""

SCENARIOS_AT_ONCE = 3
"""Concurrent scenarios. Most of one is an interpreter's start, and CI machines have two cores."""


@dataclass(kw_only=True)
class Subject:
    """A worker.

    Args:
        target: its address.
        client: a connection that all checks share.
        description: the response of ``Describe`` at the beginning.
        calls: the ordinary calls.
        patience: seconds for one wait.
        has_stream: whether it has ``ReviewStream``.
        expected: calls with an expected outcome.
        launcher: starts more workers with the same command; None: no command was given.
    """

    target: Target
    client: Client
    description: worker_pb2.DescribeResponse
    calls: tuple[OrdinaryCall, ...]
    patience: float
    has_stream: bool = True
    expected: tuple[ExpectedCall, ...] = ()
    launcher: Launcher | None = None
    _scenarios: dict[Callable[..., Awaitable[Any]], asyncio.Task[Any]] = field(default_factory=dict)
    _limit: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SCENARIOS_AT_ONCE))

    def connected(self) -> AbstractAsyncContextManager[Client]:
        """A separate connection."""
        return connected(self.target, self.patience)

    def has_policy(self, policy: str) -> bool:
        """Whether it describes this policy."""
        return any(described.name == policy for described in self.description.policies)

    def some_calls(self, most: int) -> tuple[OrdinaryCall, ...]:
        """A few ordinary calls, at least one.

        Raises:
            NotCheckableError: the worker describes no policy that could be called.
        """
        if not self.calls:
            raise NotCheckableError("the worker describes no policy that can be called")
        return self.calls[:most]

    async def still_answers(self, what: str) -> None:
        """Expect the same description on a new connection.

        Args:
            what: what was done to the worker before, as a phrase.
        """
        async with self.connected() as client:
            described = await client.describe()
        same = {policy.name for policy in described.policies} == {policy.name for policy in self.description.policies}
        expect(same, f"the same policies after {what}", shown(described))

    async def was_cancelled(self, token: str, patience: float | None = None) -> None:
        """Wait until the sleep with this token has been cancelled.

        Args:
            token: the token in the call's settings.
            patience: in seconds; None: the run's.
        """
        patience = self.patience if patience is None else patience
        call, end = probe("cancelled", {"token": token}, {}), asyncio.get_running_loop().time() + patience
        while True:
            outcome = await self.client.review(call)
            if outcome.audit_annotations.get("cancelled") == "true":
                return
            over = asyncio.get_running_loop().time() > end
            expected = "the policy's work to be cancelled (shown by probe-cancelled)"
            expect(not over, expected, f"after {patience:g} s it still runs: {shown(outcome)}")
            await asyncio.sleep(LOOK)

    async def scenario(self, play: Callable[[Launcher], Awaitable[_T]]) -> _T:
        """The result of a scenario, which starts and uses another worker. It runs once for all checks that read it.

        Args:
            play: starts the worker and returns the result.
        """
        if play not in self._scenarios:
            if self.launcher is None:
                raise NotCheckableError("it needs the worker's command, after --")
            self._scenarios[play] = asyncio.ensure_future(self._played(play, self.launcher))
        result: _T = await asyncio.shield(self._scenarios[play])
        return result

    async def _played(self, play: Callable[[Launcher], Awaitable[_T]], launcher: Launcher) -> _T:
        async with self._limit:
            return await play(launcher)

    async def close(self) -> None:
        """Cancel scenarios that still run."""
        for scenario in self._scenarios.values():
            scenario.cancel()
        await asyncio.gather(*self._scenarios.values(), return_exceptions=True)
