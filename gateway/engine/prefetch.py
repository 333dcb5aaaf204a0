"""Prefetch: the engine calls all mutating policies that match the original object in parallel, before their turns.

Prefetched calls only fill the memo. The turns stay Kubernetes' own, one at a time: in its turn a policy is matched and
called with the current object. If its document is unchanged, the prefetched answer is reused, or the turn waits for the
open call (see ``call_tracker``). An answer that no turn uses is dropped.

Never prefetched: a policy that has side effects for this request, or that cannot be called. Lookups for matching and
inputs are prefetched as well. If the object is still the original one in a policy's turn, the earlier result of
matching is reused: a fact is found once and never changes.
"""

from gateway.documents.documents import Document, DocumentBuilder
from gateway.engine.call_tracker import CallTracker, has_side_effects
from gateway.engine.lookups import Lookups
from gateway.engine.plan import Member, Plan
from gateway.engine.verdicts import Failure
from gateway.matching.index import Concerned
from gateway.matching.outcomes import Matched, Matching, Need, NeedsNamespace
from gateway.matching.pipeline import match
from gateway.review.request import Request, ReviewError


class Prefetch:
    """The policies of one review that have been matched and prefetched, by their indexes in the plan.

    ``concerned`` are the policies that have a rule about the request.
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
        """Prefetch all policies that may be prefetched, from index ``first`` on."""
        if self._plan.unavailable is not None:
            return
        for index in self._concerned:
            if index < first:
                continue
            member = self._plan.members[index]
            if member.unavailable is None and not has_side_effects(member.policy, self._request):
                self._try(index, now)

    def resume(self, first: int, now: float) -> None:
        """A fact was found: prefetch the policies from index ``first`` on that waited for one."""
        waiting, self._waiting = self._waiting, []
        for index in waiting:
            if index >= first:
                self._try(index, now)

    def matching(self, index: int) -> Matching | None:
        """The result of matching the original object; None if it was not matched or if a fact is missing."""
        return self._matchings.get(index)

    def _try(self, index: int, now: float) -> None:
        member = self._plan.members[index]
        try:
            matching = self._match(index)
            document = self._document(member) if isinstance(matching, Matched) else None
        except ReviewError:
            # The policy's turn may never come. If it does, it raises the same error.
            return
        for need in (matching, document):
            if isinstance(need, Need):
                self._lookups.prefetch(need)
                self._waiting.append(index)
        if isinstance(document, Document):
            self._tracker.prefetch(index, member, document, now)

    def _document(self, member: Member) -> Document | NeedsNamespace | Failure:
        """What the policy is sent about the object that came."""
        labels = self._lookups.labels(member) if member.inputs.needs_namespace else None
        if isinstance(labels, NeedsNamespace | Failure):
            return labels
        return self._documents.of(member.inputs, None, changed=False, namespace=labels)

    def _match(self, index: int) -> Matching:
        known = self._matchings.get(index)
        if known is not None:
            return known
        member = self._plan.members[index]
        matching: Matching = self._concerned[index]
        if not member.unconditional:
            request, facts = self._request, self._lookups.facts
            matching = match(member.policy, self._concerned[index], request, lambda: request.object, facts)
        if not isinstance(matching, Need):
            self._matchings[index] = matching
        return matching
