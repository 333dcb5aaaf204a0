"""From the bytes of an AdmissionReview to the bytes of its answer. Whatever happens on the way, there is an answer.

* A body that is no review: HTTP 400 and one line of text, because without a uid there is no review to answer.
* Everything else: HTTP 200 and an AdmissionReview with the same uid, in the same version. Even if all of this is
  broken.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from gateway.deciding import Decision, Failure, Heart, Plan
from gateway.patching import DEFAULT_LIMITS, PatchLimits
from gateway.policies import Phase
from gateway.reasons import Reason
from gateway.review import DEPTH, Request, Response, ReviewError, Status, decode, encode
from gateway.serving.driver import Asker, Driver, Namespaces
from gateway.serving.front import Reply
from gateway.serving.refusals import line

_LOG: Final = structlog.get_logger(__name__)

OVERLOADED: Final = Failure(
    reason=Reason.OVERLOADED,
    message="the gateway holds as many reviews as it may (--limit-reviews-in-flight); try again, or add replicas",
)


class Consumer(Protocol):
    """Whoever wants to know of decisions: metrics, the decision log, a demonstration."""

    def decided(self, decision: Decision) -> None:
        """A decision was made. Called before its answer leaves, so it must be quick."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """Who judges: ``plan`` gives the plan of a phase as it is at this moment, ``asker`` asks its workers.

    ``namespaces`` are the labels of the namespaces that are known, by name.
    """

    plan: Callable[[Phase], Plan]
    asker: Asker
    namespaces: Namespaces


class JudgeEvents(Protocol):
    """Who counts what did not come to a decision."""

    def abandoned(self, phase: Phase) -> None:
        """The API server hung up before the decision."""

    def not_a_review(self) -> None:
        """A body was no AdmissionReview."""


class Judge:
    """Judges the reviews of both phases.

    Args:
        panel: who judges.
        events: hears of what did not come to a decision.
        consumers: are shown each decision; what they raise is logged and changes nothing.
        depth: how deep a review may nest.
        patch_limits: of the changes that workers ask for.
    """

    def __init__(
        self,
        panel: Panel,
        *,
        events: JudgeEvents,
        consumers: Sequence[Consumer] = (),
        depth: int = DEPTH,
        patch_limits: PatchLimits = DEFAULT_LIMITS,
    ) -> None:
        self._panel = panel
        self._consumers = consumers
        self._events = events
        self._depth = depth
        self._patch_limits = patch_limits
        self._drivers: set[Driver] = set()

    def break_off(self, why: str) -> None:
        """Let all reviews in hand be decided now, by the failure policies of whoever has not judged yet."""
        for driver in tuple(self._drivers):
            driver.break_off(why)

    async def __call__(self, phase: Phase, body: bytes, started: float, ends: float, *, overloaded: bool) -> Reply:
        """The answer to ``body``, which came at ``started`` and must be answered by ``ends`` (``time.monotonic``)."""
        try:
            request = decode(body, depth=self._depth)
        except ReviewError as error:
            return self._refuse(error)
        try:
            decision = await self._decide(phase, request, started, ends, overloaded=overloaded)
            response = decision.response
            content = encode(
                response, uid=request.uid, api_version=request.api_version, mutating=phase is Phase.MUTATING
            )
        except ReviewError as error:
            # Found late, because nobody had looked. By now there is a uid to answer.
            _LOG.warning("a request cannot be read", uid=request.uid, error=str(error))
            self._events.not_a_review()
            return Reply(status=200, body=refusal(request.uid, request.api_version, 400, str(error)))
        except asyncio.CancelledError:
            self._events.abandoned(phase)
            raise
        except Exception:  # noqa: BLE001 - logged, and answered: there is always an answer
            _LOG.exception("a review could not be decided; it is refused", uid=request.uid, phase=phase.value)
            return Reply(status=200, body=refusal(request.uid, request.api_version, 500, _INTERNAL))
        self._show(decision)
        return Reply(status=200, body=content)

    async def _decide(
        self, phase: Phase, request: Request, started: float, ends: float, *, overloaded: bool
    ) -> Decision:
        plan = self._panel.plan(phase)
        if overloaded:
            plan = plan.failing(OVERLOADED)
        heart = Heart(request, plan, ends=ends, came=started, limits=self._patch_limits)
        driver = Driver(request.uid, heart, asker=self._panel.asker, namespaces=self._panel.namespaces)
        self._drivers.add(driver)
        try:
            return await driver.decide()
        finally:
            self._drivers.discard(driver)

    def _refuse(self, error: ReviewError) -> Reply:
        _LOG.warning("a request is no AdmissionReview", error=str(error))
        self._events.not_a_review()
        return Reply(status=400, body=line(str(error)), content_type="text/plain; charset=utf-8")

    def _show(self, decision: Decision) -> None:
        for consumer in self._consumers:
            try:
                consumer.decided(decision)
            except Exception:  # noqa: BLE001 - logged: who looks on must not change the answer
                _LOG.exception("a consumer of decisions failed", consumer=type(consumer).__name__)


_INTERNAL: Final = f"{Reason.INTERNAL}: the gateway could not decide this review; see its log"


_STATUS_REASONS: Final = {400: "BadRequest", 413: "RequestEntityTooLarge", 500: "InternalError"}
"""The metav1.StatusReason of each refusal of our own."""


def refusal(uid: str, api_version: str, code: int, message: str) -> bytes:
    """An AdmissionReview that refuses ``uid`` where no policy had a say: too large, unreadable, or our own mistake."""
    status = Status(code=code, message=message, reason=_STATUS_REASONS[code])
    return encode(Response(allowed=False, status=status), uid=uid, api_version=api_version, mutating=False)
