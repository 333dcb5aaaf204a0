"""Makes the dashboard of one gateway, and reads for it what belongs to a review."""

from collections.abc import Callable, Iterable, Sequence
from secrets import token_hex
from typing import Any

from gateway.engine.decision import Decision
from gateway.review.request import ReviewError
from gateway.serving.dashboard.gateway_state import GatewayState, HealthCheck
from gateway.serving.dashboard.live_data import LiveEvents
from gateway.serving.dashboard.live_stream import LiveStream
from gateway.serving.dashboard.pages import DashboardPages
from gateway.serving.dashboard.policy_statistics import PolicyStatistics
from gateway.serving.dashboard.recent_reviews import RecentReviews, RetainedDecisions
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.telemetry.decision_document import decision_document
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.redaction import Redaction


def make_dashboard(
    *,
    metrics: Metrics,
    retained: RetainedDecisions,
    loaded: Callable[[], LoadedConfiguration],
    checks: Callable[[], Iterable[HealthCheck]],
    rejected: Callable[[], Sequence[str]],
) -> DashboardPages:
    """The dashboard.

    Args:
        metrics: of this process.
        retained: the decisions that it shows.
        loaded: the configuration in force.
        checks: the readiness checks.
        rejected: the errors of the configuration that was read last, if it was rejected.
    """
    state = GatewayState(
        loaded=loaded, checks=checks, rejected=rejected, retained=retained, metrics=metrics, process=token_hex(8)
    )
    return DashboardPages(
        LiveStream(LiveEvents(state, RecentReviews(retained), metrics), metrics),
        policies=PolicyStatistics(loaded, metrics).read,
        reviews=lambda uid: [review_details(each) for each in retained.find(uid)],
    )


def review_details(decision: Decision) -> dict[str, Any]:
    """A review's page: ``decision``, and ``object``, as far as it may be shown; null without one."""
    try:
        shown = Redaction.of(decision).object(decision.object)
    except ReviewError:
        # The object cannot be read, which no policy has noticed.
        shown = None
    return {"decision": decision_document(decision), "object": shown}
