"""Answers an AdmissionReview: from the bytes of its body to the bytes of its answer. There is always an answer.

* A body that is no review: HTTP 400 and one line of text, because without a uid there is no review to answer.
* An entry that a reload removed after the header arrived: HTTP 404, as for any other unknown entry.
* Everything else, also an error inside the gateway: HTTP 200 and an AdmissionReview with the same uid, in the same
  version.

Each review ends as one Decision, which its observers get: also where the client hangs up before the answer (outcome
CANCELED), the gateway breaks, or the body is too large (FAILED, with a reason of the gateway's own). Only of a client
that hangs up before its request is read, nothing is known but the entry.

One configuration decides a review: the one in force when its body was complete, even if a reload follows.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Final, NamedTuple, Protocol

import structlog

from gateway.documents.documents import DocumentBuilder
from gateway.engine.decision import Decision, Outcome
from gateway.engine.engine import Engine
from gateway.engine.open_warnings import FailOpenWarnings
from gateway.engine.plan import Plan
from gateway.engine.trace_context import NO_TRACE, TraceContext
from gateway.engine.verdicts import Failure
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.review.request import (
    Request,
    ReviewError,
    TooDeepError,
    TooManyValuesError,
    decode,
    is_light,
)
from gateway.review.response import encode
from gateway.serving.body import TooLarge
from gateway.serving.driver import Driver
from gateway.serving.heavy_reviews import HeavyReviews
from gateway.serving.http_server import HttpReply
from gateway.serving.in_flight_shares import NO_FLOW, Flow
from gateway.serving.limits import Limits
from gateway.serving.loaded_configuration import Configurations, LoadedConfiguration
from gateway.serving.long_evaluations import LongEvaluations
from gateway.serving.outdated_calls import OutdatedCalls
from gateway.serving.oversized import OversizedReview
from gateway.serving.own_refusals import INTERNAL, internal, own_decision, refusal, refused
from gateway.serving.plans import Target
from gateway.serving.refusal_log import RefusalLog
from gateway.serving.refusals import STATUS, Refusal, line
from gateway.serving.route_table import no_entry
from gateway.telemetry.events import Events
from gateway.telemetry.table import (
    ENTRY_REVIEWS,
    HTTP_REQUESTS_REJECTED,
    LIMIT_HITS,
    NOT_A_REVIEW,
    REVIEWS_CANCELED,
)

_LOG: Final = structlog.get_logger(__name__)


class DecisionObserver(Protocol):
    """Observes decisions: metrics, the decision log, a demonstration."""

    def decided(self, decision: Decision) -> None:
        """A decision was made, or a review canceled. Called before its answer leaves, so it must be quick."""


class ReviewTimes(NamedTuple):
    """When a request arrived, when its body was complete, and when its budget ends (``time.monotonic``)."""

    started: float
    read: float
    ends: float


class ReviewHandler:
    """Judges the reviews of both phases.

    Args:
        configurations: has the configuration in force.
        events: counts reviews, and requests without a decision.
        outdated: records the calls by an outdated registration.
        consumers: observe each decision; what they raise is logged and changes nothing.
        traced: observe the decisions that are traced.
        shadows: observes the decisions of configurations in which a policy has a shadow.
        limits: how deep a review may nest, and how many values may be parsed together.
        patch_limits: of the changes that workers make.
        prefetch: whether mutating policies are called before their turn.
    """

    def __init__(  # noqa: PLR0913 - all but the first by name
        self,
        configurations: Configurations,
        *,
        events: Events,
        outdated: OutdatedCalls | None = None,
        consumers: Sequence[DecisionObserver] = (),
        traced: Sequence[DecisionObserver] = (),
        shadows: DecisionObserver | None = None,
        limits: Limits | None = None,
        patch_limits: PatchLimits = DEFAULT_LIMITS,
        prefetch: bool = True,
    ) -> None:
        self._configurations = configurations
        self._consumers = tuple(consumers)
        self._traced = tuple(traced)
        self._consumers_with_shadows = self._consumers if shadows is None else (*consumers, shadows)
        self._events = events
        self._outdated = outdated or OutdatedCalls(events)
        self._limits = limits or Limits()
        self._heavy = HeavyReviews(self._limits, events)
        self._long_evaluations = LongEvaluations(events)
        self._patch_limits = patch_limits
        self._prefetch = prefetch
        self._open_warnings = FailOpenWarnings()
        self._drivers: set[Driver] = set()
        self._refusals = RefusalLog("a request is no AdmissionReview")
        self._unreadable = RefusalLog("a request cannot be read")

    def break_off(self, why: str) -> None:
        """Decide all reviews in flight now: each policy without a verdict fails, and its failurePolicy applies."""
        self._heavy.close()
        for driver in tuple(self._drivers):
            driver.break_off(why)
        self._long_evaluations.close()

    async def __call__(  # noqa: PLR0913 - all about one request
        self,
        target: Target,
        body: bytes,
        started: float,
        ends: float,
        *,
        overloaded: Failure | None,
        flow: Flow = NO_FLOW,
        trace: TraceContext = NO_TRACE,
    ) -> HttpReply:
        """The answer to ``body``, which arrived at ``started`` and must be answered by ``ends`` (``time.monotonic``).

        ``flow`` is whose share it takes of what many values need; ``trace`` is sent to the workers.

        Raises:
            Refused: there is no such target any more; the body has too many values (TooLarge), or there are too many
                such reviews.
        """
        read = monotonic()
        configuration = self._configurations.current
        plan = configuration.plan(target)
        if plan is None:
            raise no_entry(target.path)
        try:
            request = (
                decode(body, depth=self._limits.depth)
                if is_light(body)
                else await self._large(target, body, flow, ends)
            )
        except ReviewError as error:
            return self._refuse(error)
        if overloaded is not None:
            plan = plan.failing(overloaded)
        times = ReviewTimes(started=started, read=read, ends=ends)
        make = partial(self._driver, configuration, plan, request, times, target.entry, trace, flow)
        driver: Driver | None = None
        configuration.begin()
        try:
            if request.values <= self._heavy.small_values:
                driver = make()
                decision = await self._decide(driver)
            else:
                async with self._heavy.prepared(request, plan, flow, ends) as documents:
                    driver = make(documents)
                    decision = await self._decide(driver)
            content = encode(
                decision.response,
                uid=request.uid,
                api_version=request.api_version,
                mutating=target.phase is Phase.MUTATING,
            )
            decision.ledger.encoded = monotonic()
        except ReviewError as error:
            # A part that is decoded late cannot be read. The uid is known by now, so the answer is a review.
            self._unreadable.write(NOT_A_REVIEW, uid=request.uid, entry=target.entry, error=str(error))
            self._events.count(HTTP_REQUESTS_REJECTED, NOT_A_REVIEW)
            return HttpReply(status=200, body=refusal(request.uid, request.api_version, 400, str(error)))
        except asyncio.CancelledError:
            self._record(target, lambda: self._canceled(target, driver or make(), ends))
            raise
        except Exception:  # noqa: BLE001 - logged, and answered: there is always an answer
            _LOG.exception(
                "a review could not be decided; it is refused",
                uid=request.uid,
                phase=target.phase.value,
                entry=target.entry,
            )
            self._record(target, lambda: _broken(driver, request, plan, times, target.entry, trace))
            return HttpReply(status=200, body=refusal(request.uid, request.api_version, 500, INTERNAL))
        finally:
            configuration.end()
        consumers = self._consumers_with_shadows if configuration.has_shadows else self._consumers
        if target.entry is not None:
            self._events.count(ENTRY_REVIEWS, decision.phase, target.entry, decision.outcome)
            if configuration.is_outdated(target):
                self._outdated.called(target)
        self._notify(decision, consumers)
        return HttpReply(status=200, body=content)

    def refuse(self, review: OversizedReview) -> bytes:
        """The answer to a review whose body is too large. As far as its beginning tells what it is about, it is
        recorded.
        """
        found, target = review.envelope, review.target
        plan, request = self._configurations.current.plan(target), found.request
        if plan is not None and request is not None:
            now = monotonic()
            decision = own_decision(
                Reason.REQUEST_TOO_LARGE,
                refused(STATUS[Refusal.BODY_SIZE], review.why),
                request=request,
                plan=plan,
                entry=target.entry,
                trace=review.trace,
                started=review.started,
                ended=now,
                ends=review.ends,
                read=now,
            )
            self._record(target, lambda: decision)
        return refusal(found.uid, found.api_version, STATUS[Refusal.BODY_SIZE], review.why)

    def _record(self, target: Target, decision_of: Callable[[], Decision | None]) -> None:
        """Pass on the decision of a review that its policies have not answered. Raises nothing."""
        try:
            decision = decision_of()
        except Exception:  # noqa: BLE001 - logged: the answer must not depend on it
            _LOG.exception("a review cannot be recorded", phase=target.phase.value, entry=target.entry)
            return
        if decision is None:
            return
        if target.entry is not None and decision.outcome is not Outcome.CANCELED:
            self._events.count(ENTRY_REVIEWS, decision.phase, target.entry, decision.outcome)
        self._notify(decision, self._consumers)

    def _canceled(self, target: Target, driver: Driver, ends: float) -> Decision | None:
        """The decision of a review whose task was cancelled: by the client, or by the gateway, because it is overdue
        or by an error of its own.
        """
        record = driver.abandoned()
        if record is not None and record.outcome is not Outcome.CANCELED:
            # It was decided in the same moment.
            return record
        task = asyncio.current_task()
        if task is not None and task.cancelling() and monotonic() <= ends + self._limits.overrun_seconds:
            self._events.count(REVIEWS_CANCELED, target.phase)
            return record
        return None if record is None else internal(record)

    async def _large(self, target: Target, body: bytes, flow: Flow, ends: float) -> Request:
        try:
            return await self._heavy.decode(body, flow, ends)
        except asyncio.CancelledError:
            # It is not known yet whose it is.
            self._events.count(REVIEWS_CANCELED, target.phase)
            raise
        except TooManyValuesError as error:
            raise TooLarge(str(error), body[: self._limits.uid_prefix_bytes]) from None

    async def _decide(self, driver: Driver) -> Decision:
        self._drivers.add(driver)
        try:
            return await driver.decide()
        finally:
            self._drivers.discard(driver)

    def _driver(  # noqa: PLR0913, PLR0917 - what one review consists of
        self,
        configuration: LoadedConfiguration,
        plan: Plan,
        request: Request,
        times: ReviewTimes,
        entry: str | None,
        trace: TraceContext,
        flow: Flow,
        documents: DocumentBuilder | None = None,
    ) -> Driver:
        engine = Engine(
            request,
            plan,
            ends=times.ends,
            received=times.started,
            read=times.read,
            namespaces=configuration.namespaces,
            limits=self._patch_limits,
            prefetch=self._prefetch,
            trace=trace,
            entry=entry,
            open_warnings=self._open_warnings,
            documents=documents,
        )
        return Driver(
            request.uid,
            engine,
            caller=configuration.policy_caller,
            facts=configuration.facts,
            uncached=configuration.uncached,
            finish=partial(self._long_evaluations.finish, flow),
        )

    def _refuse(self, error: ReviewError) -> HttpReply:
        self._refusals.write(NOT_A_REVIEW, error=str(error))
        self._events.count(HTTP_REQUESTS_REJECTED, NOT_A_REVIEW)
        if isinstance(error, TooDeepError):
            self._events.count(LIMIT_HITS, "depth")
        return HttpReply(status=400, body=line(str(error)), content_type="text/plain; charset=utf-8")

    def _notify(self, decision: Decision, consumers: Sequence[DecisionObserver]) -> None:
        for consumer in (*consumers, *self._traced) if decision.is_traced else consumers:
            try:
                consumer.decided(decision)
            except Exception:  # noqa: BLE001 - logged: an observer must not change the answer
                _LOG.exception("an observer of decisions failed", consumer=type(consumer).__name__)


def _broken(
    driver: Driver | None, request: Request, plan: Plan, times: ReviewTimes, entry: str | None, trace: TraceContext
) -> Decision:
    """The decision of a review that an error inside the gateway has ended."""
    record = None if driver is None else driver.abandoned()
    if record is not None:
        return internal(record)
    return own_decision(
        Reason.INTERNAL,
        refused(500, INTERNAL),
        request=request,
        plan=plan,
        entry=entry,
        trace=trace,
        started=times.started,
        ended=monotonic(),
        ends=times.ends,
        read=times.read,
    )
