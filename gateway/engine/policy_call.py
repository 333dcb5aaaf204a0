"""One call of one policy: what is put to its worker, and who in the review waits for the answer.

The engine makes one for each question that it has to put. The driver, the cache and the transport hand on this object,
and read of it what is to be put; the rest is the engine's own.

It is msgspec's struct: a dataclass takes five times as long to make, and every review makes some.
"""

from msgspec import Struct

from gateway.documents.documents import Document
from gateway.engine.plan import Member
from gateway.engine.verdicts import Failure
from gateway.policies.model import Cache, Policy

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


class PolicyCall(Struct, kw_only=True, eq=False):
    """Put ``document`` to ``policy``'s worker; tell ``answered(call, ...)`` what it says.

    After ``deadline`` the engine does not listen any more; the driver may pass the deadline on to the worker. ``uid``
    and ``traceparent`` travel beside the document.

    Which question it is, say document and ``key_prefix``: the phase, ``version``, which is the policy's as its worker
    described it, and a content hash of what can change a verdict in the configuration (worker, policy, settings,
    inputs, writes).
    ``cache`` is None for a policy without one, or with side effects for this request.

    ``cancellable`` is False for a policy with side effects: its call is not broken off when the review does not wait
    for it any more. (Its deadline, which the worker has known from the start, ends it all the same.)

    The engine's own: ``key`` in the memo, ``called_at`` when it was made, and ``invocations`` that wait for it: first
    the one that asked, then those that follow it. ``prefetched``: no turn had come when it was made; all of
    ``invocations`` follow. ``claims`` are the places in the plan of those for whom it was made early and whose turn is
    still to come.
    """

    id: int
    policy: Policy
    document: Document
    deadline: float
    uid: str
    cancellable: bool
    version: str = ""
    key_prefix: bytes = b""
    cache: Cache | None = None
    traceparent: str = ""
    key: CacheKey | None = None
    called_at: float = 0.0
    invocations: list[PolicyInvocation] = []
    prefetched: bool = False
    claims: set[int] = set()

    @property
    def wanted(self) -> bool:
        """Whether a turn waits for it, or still may."""
        return bool(self.invocations or self.claims)
