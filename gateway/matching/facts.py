"""What is known of the world beside the request: what lookups have found so far."""

from msgspec import Struct

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.matching.selectors import Labels


class Facts(Struct, frozen=True, kw_only=True):
    """Facts at hand. What is missing, matching asks for; the same question with more facts comes further.

    ``namespaces``: labels by name, None for a namespace that does not exist. ``authorizations``: the answers to checks
    of ``authorizer``.
    """

    namespaces: dict[str, Labels | None] = {}
    authorizations: dict[AuthorizationCheck, Authorization] = {}
