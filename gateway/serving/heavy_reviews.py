"""Reviews with many values: they take turns, and give the loop at least half of its time for all others.

A review with at most ``LIGHT_VALUES`` values, as almost all have, is only charged. Another one is decoded, read and
projected in slices (``decoding``, ``preparing``). After ``_BURST_SECONDS`` of slices, the next one waits as long as
they took. One review at a time has the turn, in the order of arrival. So many large objects slow each other down, and
no small one.

What they become in memory is charged before they are parsed: at most ``values_in_flight`` are alive together, and of
light reviews twice as many. A heavy review waits until it fits, and no other's turn is delayed by that. One that does
not get its turn, or its values, while it can still be answered, is not read: each policy that needs its values fails
with ``OVERLOADED``, and its failurePolicy applies.
"""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final, TypeVar

from gateway.documents.documents import DocumentBuilder
from gateway.engine.plan import Plan
from gateway.engine.preparation import preparing
from gateway.reasons import Reason
from gateway.review.request import Request, UnreadError, decoding
from gateway.serving.limits import Limits
from gateway.serving.refusals import Refusal, Refused
from gateway.telemetry.events import Events
from gateway.telemetry.table import HEAVY_REVIEWS, LIMIT_HITS

_BURST_SECONDS: Final = 0.005
"""How long slices follow each other before the loop serves others: uvloop's timers have whole milliseconds."""

_ANSWER_SECONDS: Final = 0.1
"""What a review keeps of its budget to be decided without its values."""

_MOST_VALUES: Final = 1_048_576
"""See ``Limits.values_in_flight``."""

_OVERLOADED: Final = (
    "too many reviews with many JSON values at once; try again, make the object smaller, or add replicas"
)

_T = TypeVar("_T")


class HeavyReviews:
    """The reviews with many values of one process. Create it in a running loop, or before.

    Args:
        limits: how deep a review may nest, how many values it may have to be read, and all of them together.
        events: counts heavy reviews, and those that did not get their turn.
    """

    def __init__(self, limits: Limits, events: Events) -> None:
        self._limits = limits
        self._values = min(limits.values_in_flight, _MOST_VALUES)
        self._events = events
        self._turn = asyncio.Lock()
        self._room = asyncio.Lock()
        self._alive = 0
        self._light = 0
        self._freed = asyncio.Event()

    async def decode(self, body: bytes, ends: float) -> Request:
        """The review in a body that is not light.

        Raises:
            ReviewError: see ``gateway.review.request.decode``.
            Refused: it did not get its turn.
        """
        steps = decoding(body, depth=self._limits.depth, readable=self._limits.readable_values)
        try:
            next(steps)
        except StopIteration as decoded:
            # Large, but light.
            request: Request = decoded.value
            return request
        try:
            async with asyncio.timeout_at(ends), self._turn:
                return await _in_bursts(steps)
        except TimeoutError:
            self._events.count(LIMIT_HITS, "values_in_flight")
            raise Refused(Refusal.MEMORY, f"{Reason.OVERLOADED}: {_OVERLOADED}") from None

    @asynccontextmanager
    async def prepared(self, request: Request, plan: Plan, ends: float) -> AsyncIterator[DocumentBuilder]:
        """Read the request as far as the plan needs it, while its values are charged.

        Yields:
            Its documents so far. If there was no turn until shortly before ``ends``, the request is unread.
        """
        documents = DocumentBuilder(request)
        self._events.count(HEAVY_REVIEWS)
        if request.unread is not None:
            self._events.count(LIMIT_HITS, "readable_values")
            yield documents
            return
        charged = 0
        try:
            try:
                async with asyncio.timeout_at(ends - _ANSWER_SECONDS):
                    async with self._room:
                        charged = await self._charge(request.values)
                    async with self._turn:
                        await _in_bursts(_steps(preparing(request, plan, documents)))
            except TimeoutError:
                self._events.count(LIMIT_HITS, "values_in_flight")
                request.unread = UnreadError(Reason.OVERLOADED, _OVERLOADED)
            yield documents
        finally:
            self._alive -= charged
            self._freed.set()

    def begin_light(self, request: Request) -> None:
        """Charge a light review until ``end_light``. If it is one too many, it is unread."""
        self._light += request.values
        if self._light > 2 * self._values:
            self._events.count(LIMIT_HITS, "values_in_flight")
            request.unread = UnreadError(Reason.OVERLOADED, _OVERLOADED)

    def end_light(self, request: Request) -> None:
        """A light review is answered."""
        self._light -= request.values

    async def _charge(self, values: int) -> int:
        # A single review always fits: otherwise it could never be read.
        while self._alive and self._alive + values > self._values:
            self._freed.clear()
            await self._freed.wait()
        self._alive += values
        return values


async def _in_bursts(steps: Generator[None, None, _T]) -> _T:
    """Run all steps. Between bursts of them, the loop has as long for other work."""
    while True:
        began, spent = monotonic(), 0.0
        while not spent or spent < _BURST_SECONDS:
            try:
                next(steps)
            except StopIteration as done:
                result: _T = done.value
                return result
            spent = monotonic() - began
        await asyncio.sleep(spent)


def _steps(steps: Iterator[None]) -> Generator[None, None, None]:
    yield from steps
