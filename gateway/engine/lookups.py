"""The lookups of one review that matching needs: the open ones, the turns that wait for them, and the facts found.

Each fact is looked up once per review, however many turns wait for it. A turn whose deadline passes before the lookup
returns fails; the open lookup is kept for the next turn that needs the same fact.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from gateway.cel.authorization import Authorization
from gateway.cel.program import Evaluation, NeedsAuthorization
from gateway.documents.namespace import namespace_of
from gateway.engine.match_errors import namespace_unknown
from gateway.engine.plan import Member
from gateway.engine.policy_call import PolicyInvocation
from gateway.engine.steps import AuthorizationLookup, EvaluationLookup, Lookup, NamespaceLookup
from gateway.engine.verdicts import Failure
from gateway.matching.outcomes import Need, NeedsEvaluation, NeedsNamespace, Unknown
from gateway.matching.pipeline import Facts
from gateway.matching.selectors import Labels
from gateway.reasons import Reason
from gateway.review.request import Request

Fact = Labels | Authorization | Evaluation | Unknown | None
"""What a lookup finds: a namespace's labels (None: there is no such namespace), the result of an authorization check or
of an evaluation, or why it could not be found."""


class _Open(Struct, eq=False):
    lookup: Lookup
    invocations: list[PolicyInvocation] = []


class Lookups(Struct, eq=False):
    """Keeps the lookups and their results, ``facts``.

    ``ids`` gives the next id. ``new`` are the lookups for the driver to start, ``open`` those without a result, by id.
    """

    request: Request
    ids: Iterator[int]
    facts: Facts
    new: list[Lookup] = []
    open: dict[int, _Open] = {}

    def labels(self, member: Member) -> Labels | NeedsNamespace | Failure | None:
        """The labels of the request's namespace, for a policy whose inputs need them; None for a request without one.

        A namespace that does not exist is the same failure as for a namespaceSelector: without the labels, the document
        would be a different one.
        """
        namespace = namespace_of(self.request)
        if not namespace:
            return None
        if namespace not in self.facts.namespaces:
            return NeedsNamespace(namespace=namespace)
        match self.facts.namespaces[namespace]:
            case None:
                return namespace_unknown(member.policy, namespace)
            case Unknown(message=message):
                return Failure(reason=Reason.NAMESPACE_UNKNOWN, message=message)
            case labels:
                return labels

    def wait(self, invocation: PolicyInvocation, need: Need) -> None:
        """Make ``invocation`` wait for the lookup that it needs."""
        self._find_or_start(need).invocations.append(invocation)

    def prefetch(self, need: Need) -> None:
        """Start a lookup that a later turn may need."""
        self._find_or_start(need)

    def _find_or_start(self, need: Need) -> _Open:
        for waiting in self.open.values():
            if _same(waiting.lookup, need):
                return waiting
        lookup = self._lookup(need, next(self.ids))
        self.new.append(lookup)
        waiting = self.open[lookup.id] = _Open(lookup=lookup)
        return waiting

    def _lookup(self, need: Need, new_id: int) -> Lookup:
        match need:
            case NeedsNamespace(namespace=namespace):
                return NamespaceLookup(id=new_id, namespace=namespace)
            case NeedsAuthorization(check=check):
                return AuthorizationLookup(id=new_id, check=check, user=self.request.user_info)
            case NeedsEvaluation():
                return EvaluationLookup(id=new_id, need=need)

    def found(self, lookup_id: int, fact: Fact) -> list[PolicyInvocation]:
        """Keep a fact. Returns the turns that waited for it; none if the lookup was given up."""
        waiting = self.open.pop(lookup_id, None)
        if waiting is None:
            return []
        match waiting.lookup, fact:
            case NamespaceLookup(namespace=namespace), Mapping() | Unknown() | None:
                self.facts.namespaces[namespace] = fact
            case AuthorizationLookup(check=check), Authorization() | Unknown():
                self.facts.authorizations[check] = fact
            case EvaluationLookup(need=need), Evaluation():
                self.facts.evaluations.finished(need.subject, fact)
            case lookup, _:
                raise AssertionError(f"{fact!r} does not answer {lookup!r}")
        return waiting.invocations

    def expired(self, now: float) -> Iterator[tuple[PolicyInvocation, Lookup]]:
        """Remove and return the waiting turns whose deadline has passed, each with its lookup."""
        for waiting in list(self.open.values()):
            for invocation in [invocation for invocation in waiting.invocations if invocation.deadline <= now]:
                waiting.invocations.remove(invocation)
                yield invocation, waiting.lookup

    def take_new(self) -> tuple[Lookup, ...]:
        """The new lookups since the last time. The receiver must start them."""
        taken = tuple(self.new)
        self.new.clear()
        return taken

    def give_up(self) -> None:
        """No turn waits any more: drop all lookups."""
        self.new.clear()
        self.open.clear()


def _same(lookup: Lookup, need: Need) -> bool:
    match lookup, need:
        case NamespaceLookup(namespace=one), NeedsNamespace(namespace=other):
            return one == other
        case AuthorizationLookup(check=check), NeedsAuthorization(check=needed):
            return check == needed
        case EvaluationLookup(need=one), NeedsEvaluation() as other:
            return one.subject.is_same(other.subject)
        case _:
            return False
