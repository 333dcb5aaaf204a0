"""The worker that is checked, as the checks see it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from worker_conformance.client import Client, connected
from worker_conformance.expectations import ExpectedCall
from worker_conformance.findings import NotCheckableError, expect, shown
from worker_conformance.launching import Launcher
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.questions import OrdinaryCall, probe
from worker_conformance.target import Target

_T = TypeVar("_T")

LOOK = 0.05
"""Seconds between two looks at something that sends no event; it costs the worker one small call."""

STAGES = 3
"""Scenes at the same time. Most of one is an interpreter's start, and CI machines have two cores."""


@dataclass(kw_only=True)
class Subject:
    """A worker.

    Args:
        target: where it is.
        client: a connection that checks share.
        description: what ``Describe`` said at the beginning.
        calls: what ordinary policies are called.
        patience: seconds after which nothing is waited for any longer.
        has_stream: whether it has ``ReviewStream``.
        expected: calls of which it is known what they get.
        launcher: starts further workers of its kind; None: there is no command.
    """

    target: Target
    client: Client
    description: worker_pb2.DescribeResponse
    calls: tuple[OrdinaryCall, ...]
    patience: float
    has_stream: bool = True
    expected: tuple[ExpectedCall, ...] = ()
    launcher: Launcher | None = None
    _scenes: dict[Callable[..., Awaitable[Any]], asyncio.Task[Any]] = field(default_factory=dict)
    _stage: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(STAGES))

    def connected(self) -> AbstractAsyncContextManager[Client]:
        """A connection of one's own."""
        return connected(self.target, self.patience)

    def holds(self, policy: str) -> bool:
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

    async def lives(self, what: str) -> None:
        """See that it still answers, on a new connection.

        Args:
            what: what has been done to it, as a phrase.
        """
        async with self.connected() as client:
            described = await client.describe()
        same = {policy.name for policy in described.policies} == {policy.name for policy in self.description.policies}
        expect(same, f"the same policies after {what}", shown(described))

    async def was_cancelled(self, token: str, patience: float | None = None) -> None:
        """Wait until the sleep with this token has been cancelled.

        Args:
            token: as it was called.
            patience: in seconds; None: that of all checks.
        """
        patience = self.patience if patience is None else patience
        call, end = probe("cancelled", {"token": token}, {}), asyncio.get_running_loop().time() + patience
        while True:
            outcome = await self.client.review(call)
            if outcome.audit_annotations.get("cancelled") == "true":
                return
            late = asyncio.get_running_loop().time() > end
            expected = "the policy's work to be cancelled (probe-cancelled says so)"
            expect(not late, expected, f"after {patience:g} s it still runs: {shown(outcome)}")
            await asyncio.sleep(LOOK)

    async def scene(self, play: Callable[[Launcher], Awaitable[_T]]) -> _T:
        """What happened when a further worker was started and used in some way: played once, for all checks that look
        at it.

        Args:
            play: starts it and returns what it saw.
        """
        if play not in self._scenes:
            if self.launcher is None:
                raise NotCheckableError("there is no command")
            self._scenes[play] = asyncio.ensure_future(self._played(play, self.launcher))
        result: _T = await asyncio.shield(self._scenes[play])
        return result

    async def _played(self, play: Callable[[Launcher], Awaitable[_T]], launcher: Launcher) -> _T:
        async with self._stage:
            return await play(launcher)

    async def close(self) -> None:
        """End what scenes still do."""
        for scene in self._scenes.values():
            scene.cancel()
        await asyncio.gather(*self._scenes.values(), return_exceptions=True)
