"""What one policy comes to for a request: its rules looked up in an index, then the rest, as the engine does it."""

from collections.abc import Callable
from typing import Any

from gateway.matching.equivalents import EMPTY, Equivalents
from gateway.matching.index import RuleIndex
from gateway.matching.outcomes import RULES, Matching
from gateway.matching.pipeline import Facts, match
from gateway.policies.model import Policy
from gateway.review.request import Request

NO_FACTS = Facts()


def matching(
    policy: Policy,
    on: Request,
    facts: Facts = NO_FACTS,
    *,
    current: Callable[[], Any] | None = None,
    table: Equivalents = EMPTY,
) -> Matching:
    """What matching comes to; ``current``: on this object, not the request's own."""
    ruled = RuleIndex([policy], table).concerned(on).get(0)
    return RULES if ruled is None else match(policy, ruled, on, current or (lambda: on.object), facts)
