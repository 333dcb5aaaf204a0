"""Open questions of one gateway to one queue: those that are not answered, nor failed, nor given up.

One that may be repeated keeps what it asks until it is answered: should Redis lose its data, it is put again under its
own id, and whoever has both answers one. One whose policy has side effects is put once: nobody knows whether what was
lost has been worked on.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from gateway.deciding.steps import Ask
from gateway.deciding.verdicts import Answer, Failure
from gateway.transports.descriptions import Description
from gateway.transports.errors import WorkerError
from gateway.transports.outcomes import Outcomes
from gateway.transports.proto.admission.queue.v1 import queue_pb2 as q
from gateway.transports.queue.failures import Failures
from gateway.transports.queue.wire import Requests

if TYPE_CHECKING:
    from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb

_LOG: Final = structlog.get_logger(__name__)


class Asker(Protocol):
    """Whoever waits for an answer."""

    def request(self, requests: Requests) -> bytes:
        """What is asked, a Request."""

    def told(self, reply: q.Reply) -> None:
        """The answer is there."""

    def failed(self, failure: Failure) -> None:
        """There will be none."""

    def broken_off(self) -> None:
        """The worker is closed: nobody listens to it any more."""


class OpenAsk:
    """One of them.

    ``fits`` are the descriptions of which somebody must have one where it goes; None: any. ``lane`` is where it goes,
    "" while nobody knows who is there. ``is_sent``: it was written to Redis, or part of it, and has not to be again.
    ``entry``: where it stands there, as far as Redis has said so. ``was_taken``: Redis has said so at least once.
    ``expiry`` is its deadline in milliseconds of Redis' clock, once it was written for the first time; else 0.
    """

    __slots__ = (
        "asker",
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

    def __init__(  # noqa: PLR0913 - all by name
        self,
        *,
        number: bytes,
        asker: Asker,
        fits: frozenset[Description] | None,
        size: int,
        since: float,
        deadline: float,
        may_repeat: bool,
    ) -> None:
        self.number = number
        self.asker = asker
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


class OpenAsks:
    """All of them, by id. ``bytes`` is what they hold."""

    __slots__ = ("_by_number", "_last", "bytes", "idle")

    def __init__(self) -> None:
        self._by_number: dict[bytes, OpenAsk] = {}
        self._last = 0
        self.bytes = 0
        self.idle = asyncio.Event()
        self.idle.set()

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[OpenAsk]:
        return iter(tuple(self._by_number.values()))

    def open(
        self,
        asker: Asker,
        *,
        fits: frozenset[Description] | None,
        size: int,
        since: float,
        deadline: float,
        may_repeat: bool,
    ) -> OpenAsk:
        """One more."""
        self._last += 1
        number = self._last.to_bytes(8, "big")
        made = OpenAsk(
            number=number,
            asker=asker,
            fits=fits,
            size=size,
            since=since,
            deadline=deadline,
            may_repeat=may_repeat,
        )
        self._by_number[number] = made
        self.bytes += size
        self.idle.clear()
        return made

    def answered(self, reply: q.Reply) -> OpenAsk | None:
        """Which one a reply answers; None: none that is open."""
        found = self._by_number.get(reply.id)
        # One that waits to be put again may still be answered where it was put first.
        return found if found is not None and found.expiry and found.expiry == reply.deadline else None

    def close(self, ask: OpenAsk) -> None:
        """It has its answer, or nobody waits for it."""
        ask.is_done = True
        if self._by_number.get(ask.number) is ask:
            del self._by_number[ask.number]
            self.bytes -= ask.size
        if not self._by_number:
            self.idle.set()

    def oldest(self) -> float | None:
        """Since when the oldest one is open; None: there is none."""
        first = next(iter(self._by_number.values()), None)
        return None if first is None else first.since


class Reviewing:
    """Waits for a policy's answer.

    Args:
        ask: the question.
        answered: told the answer, once, unless it is silenced.
        outcomes: reads it.
        failures: names what goes wrong.
    """

    __slots__ = ("_answered", "_ask", "_failures", "_outcomes", "is_silenced")

    def __init__(self, ask: Ask, answered: Callable[[Answer], None], outcomes: Outcomes, failures: Failures) -> None:
        self._ask = ask
        self._answered = answered
        self._outcomes = outcomes
        self._failures = failures
        self.is_silenced = False

    def request(self, requests: Requests) -> bytes:
        """See Asker."""
        return requests.of(self._ask)

    def told(self, reply: q.Reply) -> None:
        """See Asker."""
        match reply.WhichOneof("outcome"):
            case "verdict":
                self._tell(self._outcomes.read(self._ask, reply.verdict))
            case "error":
                self._tell(self._failures.said(reply.error))
            case _:
                self._tell(self._failures.meaningless("a Reply that holds no verdict"))

    def failed(self, failure: Failure) -> None:
        """See Asker."""
        self._tell(failure)

    def broken_off(self) -> None:
        """See Asker."""
        self.is_silenced = True

    def _tell(self, answer: Answer) -> None:
        if self.is_silenced:
            return
        try:
            self._answered(answer)
        except Exception:  # noqa: BLE001 - logged: one listener's mistake costs nobody else an answer
            _LOG.exception("telling an answer failed inside the gateway", uid=self._ask.uid)


class ValidatingSettings:
    """Waits for a word on settings. ``result`` is it, or a WorkerError.

    Args:
        request: what is asked, a Request.
        failures: names what goes wrong.
    """

    __slots__ = ("_failures", "_request", "result")

    def __init__(self, request: bytes, failures: Failures) -> None:
        self._request = request
        self._failures = failures
        self.result: asyncio.Future[pb.ValidateSettingsResponse] = asyncio.get_running_loop().create_future()

    def request(self, requests: Requests) -> bytes:  # noqa: ARG002 - as Asker has it
        """See Asker."""
        return self._request

    def told(self, reply: q.Reply) -> None:
        """See Asker."""
        match reply.WhichOneof("outcome"):
            case "settings":
                if not self.result.done():
                    self.result.set_result(reply.settings)
            case "error":
                self.failed(self._failures.said(reply.error))
            case _:
                self.failed(self._failures.meaningless("a Reply that says nothing of settings"))

    def failed(self, failure: Failure) -> None:
        """See Asker."""
        if not self.result.done():
            self.result.set_exception(WorkerError(failure.message))

    def broken_off(self) -> None:
        """See Asker."""
        self.result.cancel()
