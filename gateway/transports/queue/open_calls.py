"""Open calls of one gateway to one queue: not answered, not failed, not canceled.

A call that may be repeated keeps its request until it is answered. If Redis loses its data, the gateway writes the call
again with the same ID, and a bridge that gets both answers one. A call with side effects is written once: a bridge may
have handled the lost entry.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.transports.descriptions import Description
from gateway.transports.outcomes import Outcomes
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.queue.codec import Requests, settings_request
from gateway.transports.queue.failures import Failures
from gateway.transports.worker_channel import Answered, WorkerError

if TYPE_CHECKING:
    from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

_LOG: Final = structlog.get_logger(__name__)


class OpenCall(ABC):
    """An open call. ``number`` is its ID, b"" until ``OpenCalls`` has it.

    ``fits`` are the descriptions of which a bridge in its lane must have one; None: any. ``lane`` is "" until the call
    is placed. ``is_sent``: it was sent to Redis, at least in part, and need not be sent again. ``entry`` is its entry's
    ID, once Redis has answered with one; ``was_taken``: Redis has answered with one at least once. ``expiry`` is its
    deadline in milliseconds of Redis' clock, once it was written for the first time; else 0.
    """

    __slots__ = (
        "deadline",
        "entry",
        "expiry",
        "fits",
        "is_done",
        "is_sent",
        "is_waiting",
        "lane",
        "may_repeat",
        "number",
        "since",
        "size",
        "was_taken",
    )

    def __init__(
        self,
        *,
        fits: frozenset[Description] | None,
        size: int,
        since: float,
        deadline: float,
        may_repeat: bool,
    ) -> None:
        self.number = b""
        self.fits = fits
        self.size = size
        self.since = since
        self.deadline = deadline
        self.may_repeat = may_repeat
        self.lane = ""
        self.entry: bytes | None = None
        self.expiry = 0
        self.is_sent = False
        self.is_waiting = False
        self.was_taken = False
        self.is_done = False

    @property
    def is_in_doubt(self) -> bool:
        """Whether it was sent and may not be sent again: Redis may have it, so it may still be answered."""
        return self.is_sent and not self.may_repeat

    @abstractmethod
    def request(self, requests: Requests) -> bytes:
        """The Request, serialized."""

    @abstractmethod
    def replied(self, reply: q.Reply) -> None:
        """End with this reply."""

    @abstractmethod
    def failed(self, failure: Failure) -> None:
        """End with this failure."""

    @abstractmethod
    def abort(self) -> None:
        """End without an answer: the worker is closed."""


class OpenCalls:
    """All open calls, by ID. ``bytes`` is the size of their documents and settings."""

    __slots__ = ("_by_number", "_last", "bytes", "idle")

    def __init__(self) -> None:
        self._by_number: dict[bytes, OpenCall] = {}
        self._last = 0
        self.bytes = 0
        self.idle = asyncio.Event()
        self.idle.set()

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[OpenCall]:
        return iter(tuple(self._by_number.values()))

    def add(self, call: OpenCall) -> None:
        """Add a call, and give it an ID."""
        self._last += 1
        call.number = self._last.to_bytes(8, "big")
        self._by_number[call.number] = call
        self.bytes += call.size
        self.idle.clear()

    def answered(self, reply: q.Reply) -> OpenCall | None:
        """The open call that a reply answers; None: there is none."""
        found = self._by_number.get(reply.id)
        # A call that waits to be written again may still be answered at its first entry.
        return found if found is not None and found.expiry and found.expiry == reply.deadline else None

    def close(self, call: OpenCall) -> None:
        """Remove a call: it has its answer, or was canceled."""
        call.is_done = True
        if self._by_number.get(call.number) is call:
            del self._by_number[call.number]
            self.bytes -= call.size
        if not self._by_number:
            self.idle.set()

    def oldest(self) -> float | None:
        """Since when the oldest call is open; None: there is none."""
        first = next(iter(self._by_number.values()), None)
        return None if first is None else first.since


class OpenReview(OpenCall):
    """A call of a policy.

    Args:
        call: the call.
        answered: called with the answer, once, unless the call is silenced.
        outcomes: validates the outcome.
        failures: makes failures.
        fits: see OpenCall.
        since: when it was opened.
        deadline: when it ends.
    """

    __slots__ = ("_answered", "_call", "_failures", "_outcomes", "is_silenced")

    def __init__(  # noqa: PLR0913 - all but the first two by name
        self,
        call: PolicyCall,
        answered: Answered,
        *,
        outcomes: Outcomes,
        failures: Failures,
        fits: frozenset[Description] | None,
        since: float,
        deadline: float,
    ) -> None:
        super().__init__(
            fits=fits,
            size=call.size,
            since=since,
            deadline=deadline,
            may_repeat=call.cancellable,
        )
        self._call = call
        self._answered = answered
        self._outcomes = outcomes
        self._failures = failures
        self.is_silenced = False

    def request(self, requests: Requests) -> bytes:
        """See OpenCall."""
        return requests.of(self._call)

    def replied(self, reply: q.Reply) -> None:
        """See OpenCall."""
        match reply.WhichOneof("outcome"):
            case "verdict":
                self._report(self._outcomes.read(self._call, reply.verdict))
            case "error":
                self._report(self._failures.from_bridge(reply.error))
            case _:
                self._report(self._failures.empty_reply("a Reply that holds no verdict"))

    def failed(self, failure: Failure) -> None:
        """See OpenCall."""
        self._report(failure)

    def abort(self) -> None:
        """See OpenCall."""
        self.is_silenced = True

    def _report(self, answer: Answer) -> None:
        if self.is_silenced:
            return
        try:
            self._answered(self._call, answer)
        except Exception:  # noqa: BLE001 - logged: a listener's error must not affect other calls
            _LOG.exception("delivering an answer failed inside the gateway", uid=self._call.uid)


class OpenSettings(OpenCall):
    """A request to validate settings. ``result`` is the response, or a WorkerError.

    Args:
        policy: the policy's name in the worker.
        settings: the settings.
        failures: makes failures.
        fits: see OpenCall.
        since: when it was opened.
        deadline: when it ends.
    """

    __slots__ = ("_failures", "_request", "result")

    def __init__(
        self,
        policy: str,
        settings: bytes,
        *,
        failures: Failures,
        fits: frozenset[Description] | None,
        since: float,
        deadline: float,
    ) -> None:
        super().__init__(fits=fits, size=len(settings), since=since, deadline=deadline, may_repeat=True)
        self._request = settings_request(policy, settings)
        self._failures = failures
        self.result: asyncio.Future[pb.ValidateSettingsResponse] = asyncio.get_running_loop().create_future()

    def request(self, requests: Requests) -> bytes:  # noqa: ARG002 - as OpenCall has it
        """See OpenCall."""
        return self._request

    def replied(self, reply: q.Reply) -> None:
        """See OpenCall."""
        match reply.WhichOneof("outcome"):
            case "settings":
                if not self.result.done():
                    self.result.set_result(reply.settings)
            case "error":
                self.failed(self._failures.from_bridge(reply.error))
            case _:
                self.failed(self._failures.empty_reply("a Reply that holds no result of the validation of settings"))

    def failed(self, failure: Failure) -> None:
        """See OpenCall."""
        if not self.result.done():
            self.result.set_exception(WorkerError(failure.message))

    def abort(self) -> None:
        """See OpenCall."""
        self.result.cancel()
