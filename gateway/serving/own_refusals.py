"""Refusals of the gateway itself, without its policies: an error inside it, and a body that is too large.

Each is an AdmissionReview with the request's uid, and a Decision with a ``reason``: so it is in the metrics, the
decision log, the traces and ``/explain``, as every other review.
"""

from typing import Final

from msgspec.structs import replace

from gateway.engine.decision import Decision, Outcome, TimeLedger
from gateway.engine.plan import Plan
from gateway.engine.trace_context import TraceContext
from gateway.reasons import Reason
from gateway.review.request import Request
from gateway.review.response import Response, Status, encode

INTERNAL: Final = f"{Reason.INTERNAL}: the gateway could not decide this review; see its log"

_STATUS_REASONS: Final = {400: "BadRequest", 413: "RequestEntityTooLarge", 500: "InternalError"}
"""The metav1.StatusReason of each refusal by the gateway itself."""


def refused(code: int, message: str) -> Response:
    """The response of a refusal by the gateway itself."""
    return Response(allowed=False, status=Status(code=code, message=message, reason=_STATUS_REASONS[code]))


def refusal(uid: str, api_version: str, code: int, message: str) -> bytes:
    """An AdmissionReview that refuses ``uid`` without a policy: too large, unreadable, or an error in the gateway."""
    return encode(refused(code, message), uid=uid, api_version=api_version, mutating=False)


def own_decision(  # noqa: PLR0913 - what one review consists of, by name
    reason: Reason,
    response: Response,
    *,
    request: Request,
    plan: Plan,
    entry: str | None,
    trace: TraceContext,
    started: float,
    ended: float,
    ends: float,
    read: float | None = None,
) -> Decision:
    """The decision of a review in which no policy had a turn."""
    return Decision(
        phase=plan.phase,
        entry=entry,
        trace=trace,
        plan=plan,
        request=request,
        outcome=Outcome.FAILED,
        reason=reason,
        response=response,
        patch=(),
        changed_object=None,
        calls=(),
        is_traced=trace.has_span,
        started=started,
        ended=ended,
        ends=ends,
        ledger=TimeLedger(read=read),
    )


def internal(record: Decision) -> Decision:
    """The decision of a review that an error inside the gateway has ended; ``record`` has how far it got."""
    return replace(
        record,
        outcome=Outcome.FAILED,
        reason=Reason.INTERNAL,
        response=refused(500, INTERNAL),
        patch=(),
        is_traced=record.trace.has_span,
    )
