"""Single flight: equal questions that are open at the same time, in any number of reviews, are asked once.

    the first       looks in Redis, then asks its worker; the others wait
    a verdict       goes to all: the one that asked has it from its worker, the others shared it
    a failure       goes to the one that asked; each of the others asks for itself
    not to be       a verdict that its worker says not to reuse, or of another version than the question's, is for
    shared          the one that asked, too; the others ask for themselves
    leaving         (an API server hangs up, a deadline passes) ends nothing while others wait, whoever asked; the last
                    one to leave cancels what is under way

What Redis had counts for each by its own policy's ttl: for some it may be fresh, and the rest go on to the worker.
"""

from collections.abc import Callable

from gateway.caching.cache import Kept, VerdictCache
from gateway.caching.entries import Entry
from gateway.caching.events import LookupResult
from gateway.caching.waiters import Alone, Waiter
from gateway.deciding.origin import ASKED, Origin, Source
from gateway.deciding.verdicts import Answer, Verdict


class Flight:
    """One open question, and everybody who waits for it: see above. It is the worker's ``Reply``."""

    __slots__ = ("_asked", "_asker", "_cancel", "_question", "_store", "_waiters")

    def __init__(self, store: VerdictCache, question: bytes) -> None:
        self._store = store
        self._question = question
        self._waiters: list[Waiter] = []
        self._asker: Waiter | None = None
        self._asked = 0.0
        self._cancel: Callable[[], object] = lambda: None

    def join(self, waiter: Waiter) -> Callable[[], object]:
        """Wait with the others, or be the first. The result leaves.

        Raises:
            Exception: whatever asking the worker raises, if that happens at once.
        """
        first = not self._waiters
        self._waiters.append(waiter)
        waiter.asks(lambda: self._leave(waiter))
        if not first:
            return waiter.cancel
        self._store.flights[self._question] = self
        redis = self._store.redis
        try:
            if redis is not None and redis.up:
                self._cancel = redis.look_up(self._question, self._found)
            else:
                self._ask(waiter)
        except Exception:
            self._land()
            raise
        return waiter.cancel

    def _leave(self, waiter: Waiter) -> None:
        if waiter not in self._waiters:
            # They are being told just now, and one of them made this one leave.
            return
        self._waiters.remove(waiter)
        if not self._waiters:
            self._land()
            cancel, self._cancel = self._cancel, lambda: None
            cancel()

    def _land(self) -> None:
        """Nobody can join any more."""
        if self._store.flights.get(self._question) is self:
            del self._store.flights[self._question]

    # ------------------------------------------------------------------------------------------------- Redis

    def _found(self, entry: Entry | None) -> None:
        """Redis has answered, or its time is over."""
        self._cancel = lambda: None
        waiters, self._waiters = self._waiters, []
        served: list[tuple[Waiter, Kept]] = []
        stale: list[tuple[Waiter, Kept]] = []
        for waiter in waiters:
            kept = None if entry is None else self._store.judged(self._question, entry, waiter.cache)
            if kept is not None and kept.fresh and waiter.workers.settled(waiter.ask):
                served.append((waiter, kept))
                continue
            self._waiters.append(waiter)
            if kept is not None and not kept.fresh:
                stale.append((waiter, kept))
        if entry is not None and self._store.judged(self._question, entry, waiters[0].cache) is not None:
            self._store.remember(self._question, entry, waiters[0].ask.policy)
        for waiter, kept in stale:
            waiter.offer(kept)
        if self._waiters:
            self._ask_later()
        else:
            self._land()
        for waiter, kept in served:
            leads = waiter is waiters[0]
            if not waiter.ended:
                waiter.count(LookupResult.REDIS if leads else LookupResult.SHARED)
            waiter.end(kept.verdict, Origin(source=Source.REDIS if leads else Source.SHARED, age=kept.age))

    def _ask_later(self) -> None:
        asker = self._waiters[0]
        try:
            self._ask(asker)
        except Exception as error:  # noqa: BLE001 - logged; the reviews hear of a failure INTERNAL
            self._land()
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                waiter.fail(error)

    # ------------------------------------------------------------------------------------------------ worker

    def _ask(self, asker: Waiter) -> None:
        self._asker = asker
        self._asked = self._store.now()
        self._cancel = asker.workers.ask(asker.ask, self)
        asker.count_miss()

    def answered(self, answer: Answer, origin: Origin = ASKED) -> None:
        """The worker has answered the one who asked. See Reply."""
        self._land()
        self._cancel = lambda: None
        asker = self._asker
        assert asker is not None  # noqa: S101 - _ask has set it
        waiters, self._waiters = self._waiters, []
        shared = asker.keep(self._question, answer, self._asked)
        for waiter in waiters:
            if waiter is asker:
                waiter.end(answer, origin)
            elif shared:
                if not waiter.ended:
                    waiter.count(LookupResult.SHARED)
                waiter.end(answer, Origin(source=Source.SHARED))
            else:
                Alone(self._question, waiter).go()

    def fallback(self, verdict: Verdict, origin: Origin) -> None:
        """See Reply. Workers have none."""
