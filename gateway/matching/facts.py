"""What is known of the world beside the request: what lookups have found so far, and what is equivalent to what."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.matching.equivalents import EMPTY, Equivalents
from gateway.matching.selectors import Labels


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Facts at hand. What is missing, matching asks for; the same question with more facts comes further.

    ``namespaces``: labels by name, None for a namespace that does not exist. ``authorizations``: the answers to checks
    of ``authorizer``. ``equivalents``: the API server's table of equivalent resources.
    """

    namespaces: Mapping[str, Labels | None] = field(default_factory=dict)
    authorizations: Mapping[AuthorizationCheck, Authorization] = field(default_factory=dict)
    equivalents: Equivalents = EMPTY
