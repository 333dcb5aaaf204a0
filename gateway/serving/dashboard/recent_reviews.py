"""The list of recent reviews: one short record each, of the decisions that are retained for ``/explain``.

A busy gateway decides more reviews than a browser can show. Of each interval, the list has those that need attention
first (refused, failed, or with an ignored failure), then the newest others, ``MOST_NEW`` at most.
"""

import time
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from typing import Any, Final, Protocol

from gateway.engine.decision import Decision, Outcome
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Deny, Failure
from gateway.review.request import Request, ReviewError
from gateway.telemetry.decision_times import ledger_member

MOST_FIRST: Final = 200
"""Reviews that a browser is sent when it connects: 100 KB."""

MOST_NEW: Final = 50
"""Reviews that all browsers are sent in an interval."""

MOST_READ: Final = 5_000
"""Decisions that are looked at for them: 2 ms. Beyond it, the older ones are only counted by the metrics."""

TEXT_CHARACTERS: Final = 253
"""Characters of a text from the request: Kubernetes' longest name."""

POLICIES: Final = 10
"""Policies that are named for each effect."""


class RetainedDecisions(Protocol):
    """The decisions of this process that are retained."""

    def newest(self) -> Iterable[Decision]:
        """The decisions, the newest first."""

    def find(self, uid: str) -> Sequence[Decision]:
        """Those of the reviews with this uid, in order."""


class RecentReviews:
    """Reads the list of recent reviews.

    Args:
        retained: the decisions.
    """

    def __init__(self, retained: RetainedDecisions) -> None:
        self._retained = retained
        self._seen = 0.0

    def first(self) -> list[dict[str, Any]]:
        """The newest reviews, the oldest of them first."""
        return [summary(each) for each in reversed(list(islice(self._retained.newest(), MOST_FIRST)))]

    def next(self) -> tuple[list[dict[str, Any]], int]:
        """The reviews since the last call, in order, and the number of those that are left out."""
        seen = self._seen
        new = list(islice(takewhile(lambda each: each.ended > seen, self._retained.newest()), MOST_READ))
        if not new:
            return [], 0
        self._seen = new[0].ended
        chosen = sorted(new, key=_is_ordinary)[:MOST_NEW]
        shown = sorted(chosen, key=lambda each: each.ended)
        return [summary(each) for each in shown], len(new) - len(shown)


def summary(decision: Decision) -> dict[str, Any]:
    """A review on one line: who sent what, the outcome, and the policies that caused it."""
    request = decision.request
    matched = [call for call in decision.calls if call.matched]
    return {
        "id": f"{decision.started:.6f}",
        "uid": _cut(request.uid),
        "phase": decision.plan.phase.value,
        "time": round(unix_time(decision.started), 3),
        "operation": request.operation,
        "resource": _cut("/".join(filter(None, (request.resource.resource, request.sub_resource)))),
        "group": _cut(request.resource.group),
        "namespace": _cut(request.namespace),
        "name": _cut(request.name),
        "user": _cut(_user(request)),
        "dryRun": request.dry_run,
        "outcome": decision.outcome.value,
        "milliseconds": ledger_member(decision)["spentMs"],
        "matched": len({call.index for call in matched}),
        "changes": len(decision.patch),
        "denied": _names(call for call in matched if isinstance(call.answer, Deny)),
        "failed": _names(call for call in matched if isinstance(call.answer, Failure)),
        "failedOpen": _names(call for call in matched if call.failed_open),
        "changed": _names(call for call in matched if call.changes),
    }


def _is_ordinary(decision: Decision) -> bool:
    """Whether the review was allowed without an ignored failure."""
    return decision.outcome is Outcome.ALLOWED and not any(call.failed_open for call in decision.calls)


def _names(calls: Iterable[InvocationRecord]) -> list[str]:
    return list(dict.fromkeys(call.policy.qualified_name for call in calls))[:POLICIES]


def _user(request: Request) -> str:
    try:
        return request.user_info.username
    except ReviewError:
        # No policy needed the user.
        return ""


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"


def unix_time(moment: float) -> float:
    """The time of a moment on the driver's clock."""
    return time.time() - time.monotonic() + moment
