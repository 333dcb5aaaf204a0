"""The memo of one review: which calls are open, and the verdicts of those that have been answered.

Equal questions have equal verdicts, and equal keys. The document stands in a key by its digest, so that the memo of a
long chain holds no documents. ``cache`` is part of it as well: what another review was told may be an answer to one
policy, and none, or too old, for another that must not have it. A policy with side effects has no key: its calls are
never shared, never kept, never made early, never cancelled.

Beside the verdicts stand the fallbacks: verdicts past their time, which count only where calling has failed.
"""

from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.origin import Origin, Source
from gateway.engine.policy_call import CacheKey, PolicyCall
from gateway.engine.verdicts import Verdict


class MemoEntry(Struct, eq=False):
    """A verdict. ``used``: a turn has had it; what comes after that has it from the memo."""

    verdict: Verdict
    origin: Origin
    prefetched: bool
    used: bool

    def use(self) -> Origin:
        """Where the next turn to use it has it from."""
        origin = replace(self.origin, source=Source.MEMO) if self.used else self.origin
        self.used = True
        return origin


class Fallback(Struct, frozen=True, kw_only=True):
    """A stale verdict, and when it was at hand: ``origin.age`` counts until then."""

    verdict: Verdict
    origin: Origin
    received_at: float

    def origin_at(self, now: float) -> Origin:
        """Where it comes from, as old as it is now."""
        return Origin(source=Source.STALE, age=self.origin.age + max(now - self.received_at, 0.0))


class Memo(Struct, eq=False):
    """Keeps questions apart, and equal ones together.

    ``calls`` are the open ones, ``shared`` those of them that have a key, by their keys. ``entries`` are the verdicts
    that questions have had in this review, ``fallbacks`` what stands in for a verdict, should calling fail. All are
    read by the caller, where None, which is never among the keys, finds nothing.
    """

    calls: dict[PolicyCall, None] = {}
    shared: dict[CacheKey | None, PolicyCall] = {}
    entries: dict[CacheKey | None, MemoEntry] = {}
    fallbacks: dict[CacheKey | None, Fallback] = {}

    def open(self, call: PolicyCall) -> None:
        """Remember a call."""
        self.calls[call] = None
        if call.key is not None:
            self.shared[call.key] = call

    def take(self, call: PolicyCall) -> bool:
        """Whether it was open; from now on it is not. False: it was given up before."""
        if call not in self.calls:
            return False
        del self.calls[call]
        if call.key is not None and self.shared.get(call.key) is call:
            del self.shared[call.key]
        return True

    def keep(self, call: PolicyCall, verdict: Verdict, origin: Origin) -> None:
        """Remember a verdict, which the turns that waited for it have had."""
        if call.key is not None:
            used = bool(call.invocations)
            self.entries[call.key] = MemoEntry(verdict=verdict, origin=origin, prefetched=call.prefetched, used=used)

    def fall_back(self, call: PolicyCall, fallback: Fallback) -> None:
        """Remember a stale verdict for the question of this call; of a call that was given up it is nothing."""
        if call.key is not None and call in self.calls:
            self.fallbacks[call.key] = fallback

    def give_up(self) -> list[PolicyCall]:
        """Forget all open calls; those that can be cancelled."""
        cancellable = [call for call in self.calls if call.cancellable]
        self.calls.clear()
        self.shared.clear()
        return cancellable
