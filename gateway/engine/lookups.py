"""The facts of one review that matching has asked for: which are being looked up, who waits, and what was found.

A fact is looked up once for the whole review, whoever needs it, and however many turns wait for it. One that comes too
late for those who waited is a failure of theirs; it is not looked up again for the next one while it may still come.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.program import NeedsAuthorization
from gateway.engine.steps import AuthorizationAsk, Lookup, NamespaceLookup
from gateway.engine.turn import Turn
from gateway.matching.equivalents import EMPTY, Equivalents
from gateway.matching.facts import Facts
from gateway.matching.outcomes import NeedsNamespace
from gateway.matching.selectors import Labels
from gateway.review.request import Request

Fact = Labels | Authorization | None
"""What a lookup finds: a namespace's labels, None if there is no such namespace; the answer to a check."""


@dataclass(slots=True, eq=False)
class _Open:
    lookup: Lookup
    turns: list[Turn] = field(default_factory=list)


class Lookups:
    """Keeps what is being looked up, and ``facts``, which grow as things are found.

    ``ids`` gives the next id.
    """

    def __init__(self, request: Request, ids: Iterator[int], equivalents: Equivalents = EMPTY) -> None:
        self._request = request
        self._ids = ids
        self._new: list[Lookup] = []
        self._open: dict[int, _Open] = {}
        self._namespaces: dict[str, Labels | None] = {}
        self._authorizations: dict[AuthorizationCheck, Authorization] = {}
        self.facts = Facts(namespaces=self._namespaces, authorizations=self._authorizations, equivalents=equivalents)

    def wait(self, turn: Turn, need: NeedsNamespace | NeedsAuthorization) -> None:
        """Let ``turn`` wait for what it needs."""
        self._under_way(need).turns.append(turn)

    def want(self, need: NeedsNamespace | NeedsAuthorization) -> None:
        """Look up what may be needed."""
        self._under_way(need)

    def _under_way(self, need: NeedsNamespace | NeedsAuthorization) -> _Open:
        for waiting in self._open.values():
            if _same(waiting.lookup, need):
                return waiting
        lookup = self._lookup(need, next(self._ids))
        self._new.append(lookup)
        waiting = self._open[lookup.id] = _Open(lookup=lookup)
        return waiting

    def _lookup(self, need: NeedsNamespace | NeedsAuthorization, new_id: int) -> Lookup:
        match need:
            case NeedsNamespace(namespace=namespace):
                return NamespaceLookup(id=new_id, namespace=namespace)
            case NeedsAuthorization(check=check):
                return AuthorizationAsk(id=new_id, check=check, user=self._request.user_info)

    def found(self, lookup_id: int, fact: Fact) -> list[Turn]:
        """Remember a fact; the turns that waited for it, none if nobody does any more."""
        waiting = self._open.pop(lookup_id, None)
        if waiting is None:
            return []
        match waiting.lookup, fact:
            case NamespaceLookup(namespace=namespace), Mapping() | None:
                self._namespaces[namespace] = fact
            case AuthorizationAsk(check=check), Authorization():
                self._authorizations[check] = fact
            case lookup, _:
                raise AssertionError(f"{fact!r} does not answer {lookup!r}")
        return waiting.turns

    def late(self, now: float) -> Iterator[tuple[Turn, Lookup]]:
        """The turns whose time is over, each with what it waited for; they wait no longer."""
        for waiting in list(self._open.values()):
            for turn in [turn for turn in waiting.turns if turn.deadline <= now]:
                waiting.turns.remove(turn)
                yield turn, waiting.lookup

    def taken(self) -> tuple[Lookup, ...]:
        """What is to be looked up since the last time: whoever takes it does it."""
        taken = tuple(self._new)
        self._new.clear()
        return taken

    def give_up(self) -> None:
        """Nobody waits for anything any more."""
        self._new.clear()
        self._open.clear()


def _same(lookup: Lookup, need: NeedsNamespace | NeedsAuthorization) -> bool:
    match lookup, need:
        case NamespaceLookup(namespace=one), NeedsNamespace(namespace=other):
            return one == other
        case AuthorizationAsk(check=check), NeedsAuthorization(check=needed):
            return check == needed
        case _:
            return False
