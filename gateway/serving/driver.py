"""Drives the engine with a real clock and real transports: one review, from its first event to its decision.

The clock is ``time.monotonic``. uvloop's own ``time()`` is the same clock, but in whole milliseconds and as old as the
loop's turn: too coarse to tell what a review of a quarter of a millisecond costs.

A thin shell, as httpcore's connection is around h11. Everything that happens becomes an event of the engine, one at a
time, in this loop; every Step is carried out. The driver knows no rule of Kubernetes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Final, Protocol

import structlog

from gateway.cel.authorization import Authorization
from gateway.engine.decision import Decision
from gateway.engine.engine import Engine
from gateway.engine.origin import CALLED, Origin
from gateway.engine.policy_call import PolicyCall
from gateway.engine.policy_caller import PolicyCaller
from gateway.engine.steps import AuthorizationLookup, Lookup, NamespaceLookup, Step
from gateway.engine.verdicts import Answer, Failure, Verdict
from gateway.reasons import Reason
from gateway.review.request import ReviewError

_LOG: Final = structlog.get_logger(__name__)

_TICK: Final = 0.001
"""Seconds. uvloop's timers count milliseconds and may ring one early; then the engine would only say to wait again."""

Events = deque[Callable[[], Step]]
"""What the engine is to be told next."""

_NOTHING: Final = Step()


class Authorizer(Protocol):
    """How an authorization is found out, for ``authorizer`` in a matchCondition.

    ``found`` is called once and never inside the call itself. Nothing cancels it: what comes too late changes nothing.
    """

    def authorize(self, ask: AuthorizationLookup, found: Callable[[Authorization], None]) -> None:
        """Put the check to whoever authorizes."""


class NotInCluster:
    """Nobody authorizes: there is no cluster to ask. The matchCondition that asked is a CONDITION_ERROR."""

    def authorize(self, ask: AuthorizationLookup, found: Callable[[Authorization], None]) -> None:
        """Say so."""
        error = f"{ask.check.verb}: authorizer has nobody to ask, the gateway does not run in a cluster"
        asyncio.get_running_loop().call_soon(found, Authorization(error=error))


class Driver:
    """Decides one review. It is the CallWaiter of its calls.

    Args:
        uid: the review's, for the log.
        engine: not started yet; its clock is ``time.monotonic``.
        caller: calls the workers, where its memory has no answer.
        uncached: calls the workers of policies without a cache; None: ``caller`` does.
        authorizer: is asked what matchConditions ask of ``authorizer``.
    """

    def __init__(
        self,
        uid: str,
        engine: Engine,
        *,
        caller: PolicyCaller,
        uncached: PolicyCaller | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self._uid = uid
        self._engine = engine
        self._caller = caller
        self._uncached = uncached or caller
        self._authorizer = authorizer or NotInCluster()
        self._loop = asyncio.get_running_loop()
        self._decided: asyncio.Future[Decision] = self._loop.create_future()
        self._cancels: dict[PolicyCall, Callable[[], object]] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._wake_at: float | None = None

    async def decide(self) -> Decision:
        """The decision. When cancelled (the API server hung up), the calls are cancelled too.

        Raises:
            ReviewError: the request turned out to be unreadable when somebody looked.
        """
        self._event(partial(self._engine.start, monotonic()))
        try:
            return await self._decided
        except asyncio.CancelledError:
            self._event(self._engine.abandoned)
            raise
        except BaseException:
            # The future holds the error, the error its traceback, the traceback this driver and with it the body of the
            # review: a circle that only the collector would end, and it is told to come seldom.
            self._decided = self._loop.create_future()
            self._decided.cancel()
            raise
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

    def break_off(self, why: str) -> None:
        """Decide now: whoever has not judged yet is a failure INTERNAL that says ``why``."""
        if not self._decided.done():
            self._event(partial(self._engine.broken, why, monotonic()))

    def _event(self, event: Callable[[], Step]) -> None:
        """Tell the engine, and do what it says; what it says may be an event in turn."""
        events = deque([event])
        unknown: dict[PolicyCall, None] = {}
        step = _NOTHING
        while events or unknown:
            if not events:
                # Everything that this process knows was told first: a denial among it spares the other calls.
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
        """Do what a Step says; what is known at once comes to ``events``, calls that are to be made to ``unknown``."""
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
        """Whether its answer is known at once; that is an event."""
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
        """Call its worker; where that is not possible, that is an event."""
        caller = self._uncached if call.cache is None else self._caller
        try:
            cancel = caller.call(call, self)
        except Exception as error:  # noqa: BLE001 - logged; an exception of our own is a failure INTERNAL, never a hung review
            events.append(partial(self._engine.answered, call, self._broken(call, error), monotonic()))
            return
        if call.cancellable:
            self._cancels[call] = cancel

    def _broken(self, call: PolicyCall, error: Exception) -> Failure:
        _LOG.error("asking a worker failed inside the gateway", worker=call.policy.worker, uid=call.uid, exc_info=error)
        message = f"asking worker {call.policy.worker!r}: {type(error).__name__}; see the gateway's log"
        return Failure(reason=Reason.INTERNAL, message=message)

    def _cancel(self, call: PolicyCall) -> None:
        cancel = self._cancels.pop(call, None)
        if cancel is None:
            return
        try:
            cancel()
        except Exception:  # noqa: BLE001 - logged: nobody waits for the ask any more, and the review goes on
            _LOG.exception("cancelling an ask failed inside the gateway", uid=self._uid)

    def _look_up(self, lookup: Lookup, events: Events) -> None:
        """Look up a fact; what is found at once is an event."""
        if isinstance(lookup, NamespaceLookup):
            # The engine knows those of the configuration, and there is no cluster to ask for others.
            events.append(partial(self._engine.found, lookup.id, None, monotonic()))
            return
        try:
            self._authorizer.authorize(lookup, partial(self._authorized, lookup.id))
        except Exception as error:  # noqa: BLE001 - logged; whoever asked hears that nobody can tell
            _LOG.exception("asking for an authorization failed inside the gateway", uid=self._uid)
            failed = Authorization(error=f"{type(error).__name__}; see the gateway's log")
            events.append(partial(self._engine.found, lookup.id, failed, monotonic()))

    def _authorized(self, lookup_id: int, authorization: Authorization) -> None:
        if not self._decided.done():
            self._event(partial(self._engine.found, lookup_id, authorization, monotonic()))

    def _last_step(self, error: Exception) -> Step | None:
        """What follows from an exception of the engine's. None: there is no decision, whoever waits for it is told."""
        if isinstance(error, ReviewError):
            self._give_up(error)
            return None
        _LOG.error("deciding a review failed inside the gateway", uid=self._uid, exc_info=error)
        try:
            # Every policy not yet judged is a failure INTERNAL.
            return self._engine.broken(f"{type(error).__name__}; see the gateway's log", monotonic())
        except Exception as again:  # noqa: BLE001 - whoever serves answers for us, and must hear of it
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
