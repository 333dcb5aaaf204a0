"""(policy, request) -> matches, matches not, cannot tell, or what is still needed to tell: rules and selectors."""

from gateway.matching.pipeline import Matched, Matching, NeedsNamespace, NotMatched, Undecidable, match
from gateway.matching.selectors import Labels

__all__ = ["Labels", "Matched", "Matching", "NeedsNamespace", "NotMatched", "Undecidable", "match"]
