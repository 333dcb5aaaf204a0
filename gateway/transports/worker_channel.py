"""The interface of a worker for a configuration, the same for all transports: grpc, queue, webhook and hook.

All workers are a ``WorkerChannel``. Those that hold several policies and describe them (all but a webhook) are a
``DescribableChannel`` too: they have descriptions, and validate settings.
"""

from collections.abc import Callable
from typing import Protocol

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer
from gateway.telemetry.events import Events
from gateway.telemetry.labels import LIMIT_OF, WorkerEvent
from gateway.telemetry.table import LIMIT_HITS, WORKER_EVENTS
from gateway.transports.descriptions import Description
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.version_skew import VersionSkew

Answered = Callable[[PolicyCall, Answer], object]
"""Called with the answer to a call."""


class WorkerError(Exception):
    """Describe or ValidateSettings failed; ``str(error)`` names the worker and the reason."""


class SettingsValidator(Protocol):
    """A replica of a worker that can validate settings."""

    async def validate_settings(self, policy: str, settings: bytes) -> pb.ValidateSettingsResponse:
        """The worker's answer about a policy's settings.

        Raises:
            WorkerError: it cannot be reached, fails, or answers with something else.
        """


class WorkerChannel(Protocol):
    """Calls one worker."""

    @property
    def name(self) -> str:
        """The Worker's name, for messages."""

    @property
    def target(self) -> str:
        """Its address, for messages."""

    def call(
        self, call: PolicyCall, answered: Answered, fits: frozenset[Description] | None = None
    ) -> Callable[[], object]:
        """Make ``call``; ``answered`` is called once, later, in this event loop, unless the call is cancelled.

        Args:
            call: the call. One that is not cancellable has side effects: it is sent once, and never cancelled.
            answered: called with the answer; every error is a Failure.
            fits: the descriptions of which the replica must have one; None: any replica may answer.

        Returns:
            A function that cancels the call. Then ``answered`` is not called any more.
        """

    async def idle(self) -> None:
        """Return when no call is open."""

    async def close(self) -> None:
        """Cancel open calls, and close all connections."""


class DescribableChannel(WorkerChannel, Protocol):
    """A worker that describes its policies."""

    @property
    def version_skew(self) -> VersionSkew:
        """The version skew, to which answers in another than the described version are reported."""

    @property
    def live(self) -> tuple[Description, ...]:
        """The descriptions of the replicas that can be called; more than one during a rolling update."""

    @property
    def is_doubted(self) -> bool:
        """Whether an answer has contradicted the description, and the worker has not been described again since."""

    @property
    def why(self) -> str:
        """Why it cannot be called at all; empty if it can."""

    @property
    def never(self) -> str:
        """Why this process can never call it, so that no start waits for it; empty if it may become possible."""

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this whenever the replicas that can be called, or their descriptions, may have changed."""

    def unlisten(self, listener: Callable[[], object]) -> None:
        """Stop calling this."""

    def described(self) -> dict[Description, int]:
        """The descriptions of the replicas that can be called, and how many replicas have each."""

    def all_with(self, description: Description) -> tuple[SettingsValidator, ...]:
        """The replicas with this description that can validate settings."""


def count_worker_event(events: Events, worker: str, event: WorkerEvent, amount: int = 1) -> None:
    """Count an event of a worker; and a limit hit, if the event is one."""
    events.count(WORKER_EVENTS, worker, event, amount=amount)
    limit = LIMIT_OF.get(event)
    if limit is not None:
        events.count(LIMIT_HITS, limit)
