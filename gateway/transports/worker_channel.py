"""A worker as a configuration asks it, whatever its transport: grpc, queue, webhook or hook.

All of them are ``WorkerChannel``. Those that hold several policies and say what these are (all but a webhook) are
``DescribableChannel`` as well: they give descriptions, and judge settings.
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
"""Told the answer to a call."""


class WorkerError(Exception):
    """Describe or ValidateSettings did not succeed; ``str(error)`` says who and why."""


class SettingsValidator(Protocol):
    """Somebody of a worker who can be asked about settings."""

    async def validate_settings(self, policy: str, settings: bytes) -> pb.ValidateSettingsResponse:
        """What the worker says of a policy's settings.

        Raises:
            WorkerError: it cannot be reached, fails, or answers with something else.
        """


class WorkerChannel(Protocol):
    """Puts asks to one worker."""

    @property
    def name(self) -> str:
        """The Worker's name, for messages."""

    @property
    def target(self) -> str:
        """Where it is, as people are told."""

    def ask(
        self, ask: PolicyCall, answered: Answered, fits: frozenset[Description] | None = None
    ) -> Callable[[], object]:
        """Put ``ask`` to the worker; ``answered`` is called once, later, in this loop, unless it is cancelled.

        Args:
            ask: the question. One that is not cancellable has side effects: it is sent once, and never broken off.
            answered: called with the answer; whatever goes wrong is a Failure.
            fits: whoever answers must be described by one of these; None: anybody.

        Returns:
            What cancels the ask. Then ``answered`` is not called any more.
        """

    async def idle(self) -> None:
        """Return when nothing is open."""

    async def close(self) -> None:
        """Break off what is open, and leave nothing behind."""


class DescribableChannel(WorkerChannel, Protocol):
    """Says of itself which policies it holds."""

    @property
    def version_skew(self) -> VersionSkew:
        """Hears of answers in another version than the described one."""

    @property
    def live(self) -> tuple[Description, ...]:
        """What those who can be asked say of themselves; more than one while the worker is being updated."""

    @property
    def is_doubted(self) -> bool:
        """Whether an answer has contradicted what was described, which has not been described anew since."""

    @property
    def why(self) -> str:
        """Why it cannot be asked at all; empty if it can."""

    @property
    def never(self) -> str:
        """Why it cannot be asked as long as this process lives, so that nobody need wait for it; empty if it may be."""

    def listen(self, listener: Callable[[], object]) -> None:
        """Call this whenever who can be asked, or what they say of themselves, may have changed."""

    def unlisten(self, listener: Callable[[], object]) -> None:
        """Don't any more."""

    def described(self) -> dict[Description, int]:
        """Which descriptions those have who can be asked, and how many have each."""

    def all_with(self, description: Description) -> tuple[SettingsValidator, ...]:
        """Whom to ask about settings, of those who are described so."""


def count_worker_event(events: Events, worker: str, event: WorkerEvent, amount: int = 1) -> None:
    """Report that something happened, so often; and that a limit was hit, where that is what happened."""
    events.count(WORKER_EVENTS, worker, event, amount=amount)
    limit = LIMIT_OF.get(event)
    if limit is not None:
        events.count(LIMIT_HITS, limit)
