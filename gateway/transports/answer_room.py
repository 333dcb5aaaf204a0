"""The places in which the answers of unary calls are received: so many of the largest size at a time, of all workers.

gRPC receives the message of a unary call as a whole and at once: 40 answers of 38 MB took 2 GB together. So
only a few open calls are made like that (``begin_direct``). The others are made as calls with a stream of one message,
which is the same on the wire, but takes 50 to 100 us more. Their message is received when it is read; until then flow
control keeps all but 64 KB of it at the worker.

* Such a call takes a place when its headers have arrived, which a worker sends with its answer. So a small answer has
  its place for less than a millisecond, and calls that wait for their worker have none.
* The size of an answer is unknown before, so a place is one of the largest.
* A worker that has no place gets one at once, even if all are taken: one that sends headers and no answer delays its
  own answers only. (Streams receive one message of each connection at a time, too.)
* A place that becomes free goes to the worker with the fewest.
"""

import asyncio
from collections import deque

from gateway.transports.limits import TransportLimits


class AnswerRoom:
    """The places of one process.

    Args:
        limits: ``answer_bytes_in_flight`` is divided into places of ``answer_message_bytes``.
    """

    def __init__(self, limits: TransportLimits) -> None:
        self.places = max(1, limits.answer_bytes_in_flight // limits.answer_message_bytes)
        self._direct = 0
        self._taken = 0
        self._by_worker: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[bool]]] = {}

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return self._taken

    def begin_direct(self) -> bool:
        """Whether a call may be made whose answer is received without a place; if so, ``end_direct`` ends it.

        As many may be open as there are places: all, mostly, if workers answer within milliseconds.
        """
        if self._direct >= self.places:
            return False
        self._direct += 1
        return True

    def end_direct(self) -> None:
        """Such a call has ended, and its answer is not in memory as a message any more."""
        self._direct -= 1

    async def enter(self, worker: str, seconds: float) -> bool:
        """Take a place, to be given back by ``leave``. Returns False if there was none in so many seconds."""
        if worker not in self._waiting and self._fits(worker):
            self._take(worker)
            return True
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiting.setdefault(worker, deque()).append(waiter)
        alarm = loop.call_later(seconds, self._give_up, worker, waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._remove(worker, waiter)
            elif waiter.result():
                self.leave(worker)  # it got its place in the iteration in which it was cancelled
            raise
        finally:
            alarm.cancel()

    def leave(self, worker: str) -> None:
        """Give a place back."""
        self._taken -= 1
        self._by_worker[worker] -= 1
        if not self._by_worker[worker]:
            del self._by_worker[worker]
        while self._waiting:
            following = min(self._waiting, key=lambda each: self._by_worker.get(each, 0))
            if not self._fits(following):
                return
            waiters = self._waiting.pop(following)
            waiters.popleft().set_result(True)
            self._take(following)
            if waiters:
                self._waiting[following] = waiters  # behind others with as many places

    def _fits(self, worker: str) -> bool:
        return self._taken < self.places or worker not in self._by_worker

    def _take(self, worker: str) -> None:
        self._taken += 1
        self._by_worker[worker] = self._by_worker.get(worker, 0) + 1

    def _give_up(self, worker: str, waiter: "asyncio.Future[bool]") -> None:
        if not waiter.done():
            self._remove(worker, waiter)
            waiter.set_result(False)

    def _remove(self, worker: str, waiter: "asyncio.Future[bool]") -> None:
        waiters = self._waiting[worker]
        waiters.remove(waiter)
        if not waiters:
            del self._waiting[worker]
