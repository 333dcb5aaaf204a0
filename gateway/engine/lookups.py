"""The facts of one review that matching has asked for: which are being looked up, who waits, and what was found.

A fact is looked up once for the whole review, whoever needs it, and however many turns wait for it. One that comes too
late for those who waited is a failure of theirs; it is not looked up again for the next one while it may still come.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from gateway.cel.authorization import Authorization
from gateway.cel.program import NeedsAuthorization
from gateway.engine.policy_call import PolicyInvocation
from gateway.engine.steps import AuthorizationLookup, Lookup, NamespaceLookup
from gateway.matching.outcomes import NeedsNamespace
from gateway.matching.pipeline import Facts
from gateway.matching.selectors import Labels
from gateway.review.request import Request

Fact = Labels | Authorization | None
"""What a lookup finds: a namespace's labels, None if there is no such namespace; the answer to a check."""


class _Open(Struct, eq=False):
    lookup: Lookup
    invocations: list[PolicyInvocation] = []


class Lookups(Struct, eq=False):
    """Keeps what is being looked up, and ``facts``, which grow as things are found.

    ``ids`` gives the next id. ``new`` are to be looked up, ``open`` are those that nothing was found for yet, by id.
    """

    request: Request
    ids: Iterator[int]
    facts: Facts
    new: list[Lookup] = []
    open: dict[int, _Open] = {}

    def wait(self, invocation: PolicyInvocation, need: NeedsNamespace | NeedsAuthorization) -> None:
        """Let ``invocation`` wait for what it needs."""
        self._find_or_start(need).invocations.append(invocation)

    def prefetch(self, need: NeedsNamespace | NeedsAuthorization) -> None:
        """Look up what may be needed."""
        self._find_or_start(need)

    def _find_or_start(self, need: NeedsNamespace | NeedsAuthorization) -> _Open:
        for waiting in self.open.values():
            if _same(waiting.lookup, need):
                return waiting
        lookup = self._lookup(need, next(self.ids))
        self.new.append(lookup)
        waiting = self.open[lookup.id] = _Open(lookup=lookup)
        return waiting

    def _lookup(self, need: NeedsNamespace | NeedsAuthorization, new_id: int) -> Lookup:
        match need:
            case NeedsNamespace(namespace=namespace):
                return NamespaceLookup(id=new_id, namespace=namespace)
            case NeedsAuthorization(check=check):
                return AuthorizationLookup(id=new_id, check=check, user=self.request.user_info)

    def found(self, lookup_id: int, fact: Fact) -> list[PolicyInvocation]:
        """Remember a fact; the turns that waited for it, none if nobody does any more."""
        waiting = self.open.pop(lookup_id, None)
        if waiting is None:
            return []
        match waiting.lookup, fact:
            case NamespaceLookup(namespace=namespace), Mapping() | None:
                self.facts.namespaces[namespace] = fact
            case AuthorizationLookup(check=check), Authorization():
                self.facts.authorizations[check] = fact
            case lookup, _:
                raise AssertionError(f"{fact!r} does not answer {lookup!r}")
        return waiting.invocations

    def expired(self, now: float) -> Iterator[tuple[PolicyInvocation, Lookup]]:
        """The turns whose time is over, each with what it waited for; they wait no longer."""
        for waiting in list(self.open.values()):
            for invocation in [invocation for invocation in waiting.invocations if invocation.deadline <= now]:
                waiting.invocations.remove(invocation)
                yield invocation, waiting.lookup

    def take_new(self) -> tuple[Lookup, ...]:
        """What is to be looked up since the last time: whoever takes it does it."""
        take_new = tuple(self.new)
        self.new.clear()
        return take_new

    def give_up(self) -> None:
        """Nobody waits for anything any more."""
        self.new.clear()
        self.open.clear()


def _same(lookup: Lookup, need: NeedsNamespace | NeedsAuthorization) -> bool:
    match lookup, need:
        case NamespaceLookup(namespace=one), NeedsNamespace(namespace=other):
            return one == other
        case AuthorizationLookup(check=check), NeedsAuthorization(check=needed):
            return check == needed
        case _:
            return False
