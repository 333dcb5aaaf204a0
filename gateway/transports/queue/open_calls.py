"""Open questions of one gateway to one queue: those that are not answered, nor failed, nor given up.

One that may be repeated keeps what it calls until it is answered: should Redis lose its data, it is put again under its
own id, and whoever has both answers one. One whose policy has side effects is put once: nobody knows whether what was
lost has been worked on.
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
from gateway.transports.queue.failures import Failures
from gateway.transports.queue.wire import Requests, settings_request
from gateway.transports.worker_channel import Answered, WorkerError

if TYPE_CHECKING:
    from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

_LOG: Final = structlog.get_logger(__name__)


class OpenCall(ABC):
    """One of them. ``number`` is its id, b"" until it is among the open ones.

    ``fits`` are the descriptions of which somebody must have one where it goes; None: any. ``lane`` is where it goes,
    "" while nobody knows who is there. ``is_sent``: it was written to Redis, or part of it, and has not to be again.
    ``entry``: where it stands there, as far as Redis has said so. ``was_taken``: Redis has said so at least once.
    ``expiry`` is its deadline in milliseconds of Redis' clock, once it was written for the first time; else 0.
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
        """Whether it was written, and may not be again: as long as nobody knows that Redis has it not, it may be
        answered.
        """
        return self.is_sent and not self.may_repeat

    @abstractmethod
    def request(self, requests: Requests) -> bytes:
        """What is called, a Request."""

    @abstractmethod
    def reported(self, reply: q.Reply) -> None:
        """The answer is there."""

    @abstractmethod
    def failed(self, failure: Failure) -> None:
        """There will be none."""

    @abstractmethod
    def broken_off(self) -> None:
        """The worker is closed: nothing listens to it any more."""


class OpenCalls:
    """All of them, by id. ``bytes`` is what they hold."""

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
        """One more."""
        self._last += 1
        call.number = self._last.to_bytes(8, "big")
        self._by_number[call.number] = call
        self.bytes += call.size
        self.idle.clear()

    def answered(self, reply: q.Reply) -> OpenCall | None:
        """Which one a reply answers; None: none that is open."""
        found = self._by_number.get(reply.id)
        # One that waits to be put again may still be answered where it was put first.
        return found if found is not None and found.expiry and found.expiry == reply.deadline else None

    def close(self, call: OpenCall) -> None:
        """It has its answer, or nobody waits for it."""
        call.is_done = True
        if self._by_number.get(call.number) is call:
            del self._by_number[call.number]
            self.bytes -= call.size
        if not self._by_number:
            self.idle.set()

    def oldest(self) -> float | None:
        """Since when the oldest one is open; None: there is none."""
        first = next(iter(self._by_number.values()), None)
        return None if first is None else first.since


class OpenReview(OpenCall):
    """A call of a policy.

    Args:
        call: the call.
        answered: told the answer, once, unless it is silenced.
        outcomes: reads it.
        failures: names what goes wrong.
        fits: see OpenCall.
        since: when it was made.
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
        size = len(call.document.content) + len(call.policy.settings)
        super().__init__(fits=fits, size=size, since=since, deadline=deadline, may_repeat=call.cancellable)
        self._call = call
        self._answered = answered
        self._outcomes = outcomes
        self._failures = failures
        self.is_silenced = False

    def request(self, requests: Requests) -> bytes:
        """See OpenCall."""
        return requests.of(self._call)

    def reported(self, reply: q.Reply) -> None:
        """See OpenCall."""
        match reply.WhichOneof("outcome"):
            case "verdict":
                self._report(self._outcomes.read(self._call, reply.verdict))
            case "error":
                self._report(self._failures.said(reply.error))
            case _:
                self._report(self._failures.meaningless("a Reply that holds no verdict"))

    def failed(self, failure: Failure) -> None:
        """See OpenCall."""
        self._report(failure)

    def broken_off(self) -> None:
        """See OpenCall."""
        self.is_silenced = True

    def _report(self, answer: Answer) -> None:
        if self.is_silenced:
            return
        try:
            self._answered(self._call, answer)
        except Exception:  # noqa: BLE001 - logged: one listener's mistake costs nobody else an answer
            _LOG.exception("telling an answer failed inside the gateway", uid=self._call.uid)


class OpenSettings(OpenCall):
    """A question about settings. ``result`` is the word on them, or a WorkerError.

    Args:
        policy: whose they are, by its name in the worker.
        settings: the settings.
        failures: names what goes wrong.
        fits: see OpenCall.
        since: when it was made.
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

    def reported(self, reply: q.Reply) -> None:
        """See OpenCall."""
        match reply.WhichOneof("outcome"):
            case "settings":
                if not self.result.done():
                    self.result.set_result(reply.settings)
            case "error":
                self.failed(self._failures.said(reply.error))
            case _:
                self.failed(self._failures.meaningless("a Reply that says nothing of settings"))

    def failed(self, failure: Failure) -> None:
        """See OpenCall."""
        if not self.result.done():
            self.result.set_exception(WorkerError(failure.message))

    def broken_off(self) -> None:
        """See OpenCall."""
        self.result.cancel()
