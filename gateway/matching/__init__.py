"""(policy, request) -> matches, matches not, cannot tell, or needs a fact: rules, selectors, matchConditions."""

from gateway.conditions import NeedsAuthorization
from gateway.matching.equivalents import EMPTY, Equivalents, ServedResource
from gateway.matching.facts import Facts
from gateway.matching.outcomes import Matched, Matching, NeedsNamespace, NotMatched, Undecidable, WrongVersion
from gateway.matching.pipeline import match
from gateway.matching.selectors import Labels

__all__ = [
    "EMPTY",
    "Equivalents",
    "Facts",
    "Labels",
    "Matched",
    "Matching",
    "NeedsAuthorization",
    "NeedsNamespace",
    "NotMatched",
    "ServedResource",
    "Undecidable",
    "WrongVersion",
    "match",
]
