"""Reviews with many values: they take turns, and give the loop at least half of its time for all others.

    ========  ===================================  =====================================================================
    a review  has values                           and
    ========  ===================================  =====================================================================
    small     ``values_in_flight`` for each of     is bounded by ``reviews_in_flight`` alone
              ``reviews_in_flight``: 512 (a pod
              has 200)
    light     ``LIGHT_VALUES`` at most             waits for room
    heavy     more                                 waits for room and for the turn, and is read in slices
    ========  ===================================  =====================================================================

What a review becomes in memory is charged before it is parsed: at most ``values_in_flight`` are alive of small ones
together, of light ones as many, and of heavy ones 7/4 of that: two of the largest fit and some, so that one namespace
leaves room for another's. A heavy review is decoded, read and projected in slices (``decoding``, ``preparing``). After
``_BURST_SECONDS`` of slices, the next one waits as long as they took. One review at a time has the turn. So many large
objects slow each other down, and no small one; and since room and turn are shared by flows (``fair_room``), those of
one namespace slow down no other's.

A review whose values no policy needs is not charged. One that does not get its turn, or its room, while it can still be
answered, is not read: each policy that needs its values fails with ``OVERLOADED``, and its failurePolicy applies.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic
from typing import Final, TypeVar

from gateway.documents.documents import DocumentBuilder
from gateway.engine.plan import Plan
from gateway.engine.preparation import needs_values, preparing
from gateway.reasons import Reason
from gateway.review.request import LIGHT_VALUES, Request, UnreadError, decoding
from gateway.serving.fair_room import FairRoom
from gateway.serving.in_flight_shares import Flow
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

_BYTES_A_VALUE: Final = 16
"""To decode so many bytes costs about as much as to read one value."""

_OVERLOADED: Final = (
    "too many reviews with many JSON values at once, in all or of this namespace; try again, make the object smaller, "
    "or add replicas"
)

_T = TypeVar("_T")


class HeavyReviews:
    """The reviews with many values of one process. Create it in a running loop, or before.

    Args:
        limits: how deep a review may nest, how many values it may have to be read, and all of them together.
        events: counts heavy reviews, and those that did not get their turn.

    ``small_values``: a review with so many values needs nothing of this.
    """

    def __init__(self, limits: Limits, events: Events) -> None:
        self._limits = limits
        values = min(limits.values_in_flight, _MOST_VALUES)
        self._events = events
        self.small_values = min(values // limits.reviews_in_flight, LIGHT_VALUES)
        self._turn = FairRoom(1)
        self._light = FairRoom(values)
        self._heavy = FairRoom(values * 7 // 4)

    def close(self) -> None:
        """Let no review wait any more: those that would are unread."""
        for room in (self._turn, self._light, self._heavy):
            room.close()

    async def decode(self, body: bytes, flow: Flow, ends: float) -> Request:
        """The review in a body that is not light, and whose it is.

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
            async with asyncio.timeout_at(ends), self._turn.taken(flow, 1, cost=len(body) / _BYTES_A_VALUE):
                return await _in_bursts(steps)
        except TimeoutError:
            self._events.count(LIMIT_HITS, "values_in_flight")
            raise Refused(Refusal.MEMORY, f"{Reason.OVERLOADED}: {_OVERLOADED}") from None

    @asynccontextmanager
    async def prepared(self, request: Request, plan: Plan, flow: Flow, ends: float) -> AsyncIterator[DocumentBuilder]:
        """Read a request as far as the plan needs it if it is heavy, while its values are charged.

        Yields:
            Its documents so far. If there was no room or no turn until shortly before ``ends``, the request is unread.
        """
        documents, heavy = DocumentBuilder(request), request.values > LIGHT_VALUES
        if heavy:
            self._events.count(HEAVY_REVIEWS)
        if request.unread is not None:
            self._events.count(LIMIT_HITS, "readable_values")
            yield documents
            return
        if not needs_values(request, plan):
            yield documents
            return
        cost = request.values
        async with AsyncExitStack() as until_answered:
            try:
                async with asyncio.timeout_at(ends - _ANSWER_SECONDS):
                    room = self._heavy if heavy else self._light
                    await until_answered.enter_async_context(room.taken(flow, cost, cost=cost))
                    if heavy:
                        async with self._turn.taken(flow, 1, cost=cost):
                            await _in_bursts(_steps(preparing(request, plan, documents)))
            except TimeoutError:
                self._events.count(LIMIT_HITS, "values_in_flight")
                request.unread = UnreadError(Reason.OVERLOADED, _OVERLOADED)
            yield documents


async def _in_bursts(steps: Generator[None, None, _T]) -> _T:
    """Run all steps. Between bursts of them, the loop has as long for other work."""
    while True:
        began, spent = monotonic(), 0.0
        # To look for garbage among what is read takes longer than to read it: it has a call of the loop of its own.
        if gc.isenabled():
            gc.disable()
            asyncio.get_running_loop().call_soon(_collect)
        while not spent or spent < _BURST_SECONDS:
            try:
                next(steps)
            except StopIteration as done:
                result: _T = done.value
                return result
            spent = monotonic() - began
        await asyncio.sleep(spent)


def _collect() -> None:
    gc.enable()
    gc.collect(0)


def _steps(steps: Iterator[None]) -> Generator[None, None, None]:
    yield from steps
