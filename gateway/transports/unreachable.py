"""A worker for which this process lacks the settings to connect: each call fails with CONFIGURATION and the reason."""

import asyncio
from collections.abc import Callable

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Failure
from gateway.reasons import Reason
from gateway.telemetry.events import Events
from gateway.transports.descriptions import Description
from gateway.transports.version_skew import VersionSkew
from gateway.transports.worker_channel import Answered, SettingsValidator


class UnreachableWorker:
    """A ``DescribableChannel`` that has no description.

    Args:
        name: the Worker's name.
        target: its address, for messages.
        why: why this process can never call it, and what to do.
        events: counts it as a worker.
    """

    def __init__(self, name: str, target: str, why: str, events: Events) -> None:
        self._events = events
        self.name = name
        self.target = target
        self.never = self.why = f"worker {name!r} cannot be called: {why}"
        self.version_skew = VersionSkew(0.0)
        self.is_doubted = False
        self.live: tuple[Description, ...] = ()
        events.worker_added(name, ())

    def call(
        self, call: PolicyCall, answered: Answered, fits: frozenset[Description] | None = None
    ) -> Callable[[], object]:
        """See WorkerChannel."""
        del fits
        failure = Failure(reason=Reason.CONFIGURATION, message=self.why)
        return asyncio.get_running_loop().call_soon(answered, call, failure).cancel

    def listen(self, listener: Callable[[], object]) -> None:
        """See DescribableChannel: nothing ever changes."""

    def unlisten(self, listener: Callable[[], object]) -> None:
        """See DescribableChannel."""

    def described(self) -> dict[Description, int]:
        """See DescribableChannel."""
        return {}

    def all_with(self, description: Description) -> tuple[SettingsValidator, ...]:
        """See DescribableChannel."""
        del description
        return ()

    async def idle(self) -> None:
        """See WorkerChannel."""

    async def close(self) -> None:
        """See WorkerChannel."""
        self._events.worker_removed(self.name)
