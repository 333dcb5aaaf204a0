"""A policy's turn in a review: who, what about, and until when."""

from msgspec import Struct

from gateway.documents.document import Document
from gateway.engine.plan import Member
from gateway.engine.verdicts import Failure
from gateway.policies.model import Cache

CacheKey = tuple[str, str, bytes, Cache | None, bytes]
"""Worker, policy, settings, cache, and the document's digest: what is equal in these is the same question."""


class PolicyInvocation(Struct, eq=False):
    """A policy's turn that has begun and is not settled. Times are seconds on the driver's clock.

    ``called_at`` is when its question was put, or when it began to follow a call that was open. ``failure`` is what
    that call came to, if the turn has asked again since: it counts if nothing better comes until ``deadline``.
    """

    member: Member
    index: int
    round: int
    started: float
    deadline: float
    document: Document | None = None
    key: CacheKey | None = None
    called_at: float = 0.0
    failure: Failure | None = None
