"""Prefetched calls: every policy that matches the object that came, and can be asked, is asked at once.

They only warm the memo. The walk stays Kubernetes' own, one turn at a time: in its turn a policy is matched on the
object as it then is, and asked about that; if it is the question that was prefetched, the answer is there already, or
on its way (what becomes of a prefetched call is told in ``call_tracker``). An answer that no turn asks for vanishes.

Never prefetched: a policy that has side effects for this request, or that cannot be asked at all. What matching and
inputs need to know is looked up early as well. Of what was matched early, the outcome holds in the policy's turn too,
if the object is still the one that came: facts are found once and never change.
"""

from gateway.cel.program import NeedsAuthorization
from gateway.documents.documents import Document
from gateway.engine.call_tracker import CallTracker, has_side_effects
from gateway.engine.document_builder import DocumentBuilder
from gateway.engine.lookups import Lookups
from gateway.engine.plan import Plan
from gateway.matching.index import Concerned
from gateway.matching.outcomes import Matched, Matching, NeedsNamespace
from gateway.matching.pipeline import match
from gateway.review.request import Request, ReviewError


class Prefetch:
    """Who has been matched and prefetched in one review. Places are those in the plan, from 0.

    ``concerned`` are those of the policies that have a rule about the request.
    """

    def __init__(
        self,
        request: Request,
        plan: Plan,
        concerned: Concerned,
        *,
        lookups: Lookups,
        documents: DocumentBuilder,
        tracker: CallTracker,
    ) -> None:
        self._request = request
        self._plan = plan
        self._concerned = concerned
        self._lookups = lookups
        self._documents = documents
        self._tracker = tracker
        self._matchings: dict[int, Matching] = {}
        self._waiting: list[int] = []

    def start(self, first: int, now: float) -> None:
        """Ask early whoever may be asked, from place ``first`` on."""
        if self._plan.unavailable is not None:
            return
        for index in self._concerned:
            if index < first:
                continue
            member = self._plan.members[index]
            if member.unavailable is None and not has_side_effects(member.policy, self._request):
                self._try(index, now)

    def resume(self, first: int, now: float) -> None:
        """A fact was found: ask those from place ``first`` on that waited for one."""
        waiting, self._waiting = self._waiting, []
        for index in waiting:
            if index >= first:
                self._try(index, now)

    def matching(self, index: int) -> Matching | None:
        """What matching came to on the object that came; None where that was not asked or depends on a missing fact."""
        return self._matchings.get(index)

    def _try(self, index: int, now: float) -> None:
        member = self._plan.members[index]
        try:
            matching = self._match(index)
            document = self._documents.of_original(member) if isinstance(matching, Matched) else None
        except ReviewError:
            # The policy's turn may never come. If it does, this comes up again.
            return
        for need in (matching, document):
            if isinstance(need, NeedsNamespace | NeedsAuthorization):
                self._lookups.prefetch(need)
                self._waiting.append(index)
        if isinstance(document, Document):
            self._tracker.prefetch(index, member, document, now)

    def _match(self, index: int) -> Matching:
        known = self._matchings.get(index)
        if known is not None:
            return known
        member = self._plan.members[index]
        matching: Matching = self._concerned[index]
        if not member.unconditional:
            request, facts = self._request, self._lookups.facts
            matching = match(member.policy, self._concerned[index], request, lambda: request.object, facts)
        if not isinstance(matching, NeedsNamespace | NeedsAuthorization):
            self._matchings[index] = matching
        return matching
