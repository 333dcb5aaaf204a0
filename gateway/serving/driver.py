"""Drives the engine with a real clock and real transports: one review, from its first event to its decision.

The clock is ``time.monotonic``. uvloop's ``time()`` is the same clock, but has whole milliseconds and is updated once
per loop iteration: too coarse to measure a review of a quarter of a millisecond.

The driver is a thin shell around the engine, like httpcore's connection around h11. Everything that happens becomes an
event of the engine, one at a time, in this loop; the driver carries out every Step. It knows no rule of Kubernetes.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import monotonic
from typing import Final, Protocol

import structlog

from gateway.cel.program import Evaluation
from gateway.engine.answer_source import CALLED, Origin
from gateway.engine.decision import Decision
from gateway.engine.engine import NO_NAMESPACES, Engine
from gateway.engine.lookups import Fact
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import PolicyCaller
from gateway.engine.steps import AuthorizationLookup, EvaluationLookup, FactLookup, Lookup, Step
from gateway.engine.verdicts import Answer, Failure, Verdict
from gateway.matching.outcomes import Unknown
from gateway.matching.selectors import Labels
from gateway.reasons import Reason
from gateway.review.request import ReviewError

_LOG: Final = structlog.get_logger(__name__)

_TICK: Final = 0.001
"""Seconds. uvloop's timers count milliseconds and may fire one early; then the engine would only call to wait again."""

Events = deque[Callable[[], Step]]
"""The engine's next events."""

Finish = Callable[[Callable[[], Evaluation]], Awaitable[Evaluation]]
"""Does an evaluation that takes long, in its turn, while the loop goes on."""

_NOTHING: Final = Step()


class FactSource(Protocol):
    """Looks up what matching needs to know of the cluster: the labels of a namespace, an authorization."""

    @property
    def namespaces(self) -> Mapping[str, Labels]:
        """The labels of the namespaces that need no lookup, by name."""

    def look_up(self, lookup: FactLookup, found: Callable[[Fact], None]) -> None:
        """Start a lookup. ``found`` is called once, after this has returned. A lookup is not cancelled: a late result
        is ignored.
        """


class NotInCluster:
    """A FactSource that knows the namespaces of the configuration, and cannot check authorizations."""

    def __init__(self, namespaces: Mapping[str, Labels] = NO_NAMESPACES) -> None:
        self.namespaces = namespaces

    def look_up(self, lookup: FactLookup, found: Callable[[Fact], None]) -> None:
        """Find nothing."""
        fact: Fact = None
        if isinstance(lookup, AuthorizationLookup):
            verb = lookup.check.verb
            fact = Unknown(message=f"{verb}: authorizer cannot check this without --cluster; serve with --cluster")
        asyncio.get_running_loop().call_soon(found, fact)


class Driver:
    """Decides one review. It is the CallWaiter of its calls.

    Args:
        uid: the review's, for the log.
        engine: not started yet; its clock is ``time.monotonic``.
        caller: calls the workers, if its cache has no answer.
        facts: looks up what matching needs to know of the cluster.
        uncached: calls the workers of policies without a cache; None: ``caller`` does.
        finish: does an evaluation that takes long; None: a thread does, at once.
    """

    def __init__(
        self,
        uid: str,
        engine: Engine,
        *,
        caller: PolicyCaller,
        facts: FactSource,
        uncached: PolicyCaller | None = None,
        finish: Finish | None = None,
    ) -> None:
        self._uid = uid
        self._engine = engine
        self._caller = caller
        self._uncached = uncached or caller
        self._facts = facts
        self._finish = finish or asyncio.to_thread
        self._evaluations: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._decided: asyncio.Future[Decision] = self._loop.create_future()
        self._cancels: dict[PolicyCall, Callable[[], object]] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._wake_at: float | None = None

    async def decide(self) -> Decision:
        """The decision. When cancelled (the API server hung up), the calls are cancelled too.

        Raises:
            ReviewError: a part of the request that the engine needs cannot be read.
        """
        self._event(partial(self._engine.start, monotonic()))
        self._engine.ledger.dispatched = monotonic()
        try:
            return await self._decided
        except asyncio.CancelledError:
            self.abandoned()
            raise
        except BaseException:
            # The future holds the error, the error its traceback, the traceback this driver and with it the body of the
            # review: a cycle that only the garbage collector would free, which runs seldom.
            self._decided = self._loop.create_future()
            self._decided.cancel()
            raise
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
            for task in tuple(self._evaluations):
                task.cancel()

    def abandoned(self) -> Decision | None:
        """The record of a review that is given up, and cancels its calls; where it was decided, the decision. None: an
        error inside the gateway, which is logged.
        """
        if self._decided.cancelled():
            # The cancellation has taken it along.
            self._decided = self._loop.create_future()
        if not self._decided.done():
            self._event(lambda: self._engine.abandoned(monotonic()))
        if not self._decided.done() or self._decided.exception() is not None:
            return None
        return self._decided.result()

    def break_off(self, why: str) -> None:
        """Decide now: each policy without a verdict fails with INTERNAL and the message ``why``."""
        if not self._decided.done():
            self._event(partial(self._engine.broken, why, monotonic()))

    def _event(self, event: Callable[[], Step]) -> None:
        """Give the engine an event and carry out its Step; that may make more events, which follow."""
        events = deque([event])
        unknown: dict[PolicyCall, None] = {}
        step = _NOTHING
        while events or unknown:
            if not events:
                # The engine gets all known answers first: a denial among them saves the other calls.
                call = next(iter(unknown))
                del unknown[call]
                self._call(call, events)
                continue
            try:
                step = events.popleft()()
            except Exception as error:  # noqa: BLE001 - logged, and answered
                last = self._last_step(error)
                if last is None:
                    return
                step = last
            self._carry_out(step, events, unknown)
        if step.decision is None and step.wake_at != self._wake_at:
            self._set_alarm(step.wake_at)

    def _carry_out(self, step: Step, events: Events, unknown: dict[PolicyCall, None]) -> None:
        """Carry out a Step. Answers known at once are added to ``events``, calls to make are added to ``unknown``."""
        for call in step.cancels:
            if call in unknown:
                del unknown[call]
            else:
                self._cancel(call)
        for call in step.calls:
            if call.cache is None or not self._is_known(call, events):
                unknown[call] = None
        for lookup in step.lookups:
            self._look_up(lookup, events)
        if step.decision is not None:
            unknown.clear()
            if not self._decided.done():
                self._decided.set_result(step.decision)

    def _is_known(self, call: PolicyCall, events: Events) -> bool:
        """Whether the answer of the call is known at once; if so, it is added to ``events``."""
        answer: Answer
        try:
            known = self._caller.known(call)
            if known is None:
                return False
            answer, origin = known
        except Exception as error:  # noqa: BLE001 - as in _call
            answer, origin = self._broken(call, error), CALLED
        events.append(partial(self._engine.answered, call, answer, monotonic(), origin))
        return True

    def _call(self, call: PolicyCall, events: Events) -> None:
        """Call the worker. If that raises, the failure is added to ``events``."""
        caller = self._uncached if call.cache is None else self._caller
        try:
            cancel = caller.call(call, self)
        except Exception as error:  # noqa: BLE001 - logged; the call fails with INTERNAL, the review never hangs
            events.append(partial(self._engine.answered, call, self._broken(call, error), monotonic()))
            return
        if call.cancellable:
            self._cancels[call] = cancel

    def _broken(self, call: PolicyCall, error: Exception) -> Failure:
        worker = call.policy.worker
        _LOG.error("calling a worker failed inside the gateway", worker=worker, uid=call.uid, exc_info=error)
        message = f"calling worker {worker!r}: {type(error).__name__}; see the gateway's log"
        return Failure(reason=Reason.INTERNAL, message=message)

    def _cancel(self, call: PolicyCall) -> None:
        cancel = self._cancels.pop(call, None)
        if cancel is None:
            return
        try:
            cancel()
        except Exception:  # noqa: BLE001 - logged: the answer is not needed any more, and the review goes on
            _LOG.exception("cancelling a call failed inside the gateway", uid=self._uid)

    def _look_up(self, lookup: Lookup, events: Events) -> None:
        """Start a lookup. If that raises, the fact is unknown: it is added to ``events``."""
        if isinstance(lookup, EvaluationLookup):
            task = self._loop.create_task(self._evaluate(lookup))
            self._evaluations.add(task)
            task.add_done_callback(self._evaluations.discard)
            return
        try:
            self._facts.look_up(lookup, partial(self._found, lookup.id))
        except Exception as error:  # noqa: BLE001 - logged; the fact is unknown
            _LOG.exception("a lookup failed inside the gateway", uid=self._uid)
            unknown = Unknown(message=f"{type(error).__name__}; see the gateway's log")
            events.append(partial(self._engine.found, lookup.id, unknown, monotonic()))

    async def _evaluate(self, lookup: EvaluationLookup) -> None:
        try:
            evaluation = await self._finish(lookup.need.finish)
        except Exception as error:  # noqa: BLE001 - logged: the review never hangs
            _LOG.error("a condition cannot be evaluated", uid=self._uid, exc_info=error)
            self.break_off(f"{type(error).__name__}; see the gateway's log")
        else:
            self._found(lookup.id, evaluation)

    def _found(self, lookup_id: int, fact: Fact) -> None:
        if not self._decided.done():
            self._event(partial(self._engine.found, lookup_id, fact, monotonic()))

    def _last_step(self, error: Exception) -> Step | None:
        """The Step after an exception of the engine. None: there is no decision, and ``decide`` raises."""
        if isinstance(error, ReviewError):
            self._give_up(error)
            return None
        _LOG.error("deciding a review failed inside the gateway", uid=self._uid, exc_info=error)
        try:
            # Each policy without a verdict fails with INTERNAL.
            return self._engine.broken(f"{type(error).__name__}; see the gateway's log", monotonic())
        except Exception as again:  # noqa: BLE001 - ``decide`` raises it, and its caller answers
            self._give_up(again)
            return None

    def _give_up(self, error: Exception) -> None:
        for call in tuple(self._cancels):
            self._cancel(call)
        if not self._decided.done():
            self._decided.set_exception(error)

    def answered(self, call: PolicyCall, answer: Answer, origin: Origin = CALLED) -> None:
        """See CallWaiter."""
        self._cancels.pop(call, None)
        if not self._decided.done():
            self._event(partial(self._engine.answered, call, answer, monotonic(), origin))
        if not isinstance(answer, Failure) and answer.version not in ("", call.version):
            self._caller.disagreed(call, answer.version)

    def fallback(self, call: PolicyCall, verdict: Verdict, origin: Origin) -> None:
        """See CallWaiter."""
        if not self._decided.done():
            self._event(partial(self._engine.fallback, call, verdict, origin, monotonic()))

    def _set_alarm(self, wake_at: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._wake_at = wake_at
        after = None if wake_at is None else max(wake_at - monotonic(), 0.0) + _TICK
        self._alarm = None if after is None else self._loop.call_later(after, self._ring)

    def _ring(self) -> None:
        self._alarm = self._wake_at = None
        if not self._decided.done():
            self._event(partial(self._engine.expired, monotonic()))
