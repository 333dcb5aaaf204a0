"""One call of one policy: what its worker receives, and the turns of the review that wait for the answer.

The engine makes one for each call. The driver, the cache and the transport pass this object on and read from it what to
send; the other fields belong to the engine.
"""

from msgspec import Struct

from gateway.documents.documents import Document
from gateway.engine.answer_source import CallRecord
from gateway.engine.plan import Member
from gateway.engine.verdicts import Failure
from gateway.policies.model import Cache, Policy

CacheKey = tuple[str, str, bytes, Cache | None, bytes]
"""Worker, policy, settings, cache, and the document's digest: calls with equal keys have the same verdict."""


class PolicyInvocation(Struct, eq=False):
    """A policy's turn that has begun and not ended. Times are seconds on the driver's clock.

    ``called_at`` is when its call was made, or when it began to follow an open call. ``failure`` is the failure of a
    prefetched call after which the turn has called again: it counts if no answer comes before ``deadline``.
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
    """Send ``document`` to ``policy``'s worker, and pass its answer to the engine's ``answered(call, ...)``.

    After ``deadline`` the engine ignores the answer; the driver may pass the deadline on to the worker. ``uid``,
    ``traceparent`` and ``tracestate`` (W3C Trace Context) are sent beside the document. ``size``: the bytes of the
    document and of the policy's settings.

    ``namespace`` is the request's, for the fair use of the worker; it is not sent.

    The document and ``key_prefix`` identify the call in a cache. ``key_prefix`` consists of the phase, ``version`` (the
    policy's version in its worker's description), and a hash of what can change a verdict in the configuration (worker,
    policy, settings, inputs, writes). ``cache`` is None for a policy without one, or with side effects for this
    request.

    ``cancellable`` is False for a policy with side effects: its call is not cancelled when the review no longer waits
    for it. (Its deadline, which the worker knows from the start, still ends it.)

    For the engine only: ``key`` in the memo, ``called_at`` when it was made, and the ``invocations`` that wait for it:
    first the one that made it, then its followers. ``prefetched``: it was made before a turn; all of ``invocations``
    follow it. ``claims`` are the indexes in the plan of the policies whose turn may still use it.

    For the record, the cache sets ``lookup``, the result of its lookup, ``looked_up_at``, when Redis had answered, and
    ``shared_with``, the traceparent of the call of another review whose answer it shares.
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
    tracestate: str = ""
    key: CacheKey | None = None
    called_at: float = 0.0
    namespace: str = ""
    invocations: list[PolicyInvocation] = []
    prefetched: bool = False
    claims: set[int] = set()
    lookup: str = ""
    looked_up_at: float | None = None
    shared_with: str = ""
    answered_at: float | None = None
    size: int = 0

    def __post_init__(self) -> None:
        self.size = len(self.document.content) + len(self.policy.settings)

    def record(self, answered_at: float | None) -> CallRecord:
        """What is recorded of it; ``answered_at`` is None if no answer came in time."""
        self.answered_at = answered_at
        return CallRecord(
            number=self.id,
            called_at=self.called_at,
            answered_at=answered_at,
            lookup=self.lookup,
            looked_up_at=self.looked_up_at,
            shared_with=self.shared_with,
        )

    @property
    def wanted(self) -> bool:
        """Whether a turn waits for it, or still may."""
        return bool(self.invocations or self.claims)
