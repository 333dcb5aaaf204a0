"""The memo of one review: its open calls, and the verdicts of the answered ones.

Calls with equal keys have equal verdicts. A key has the document's digest, so that the memo of a long chain holds no
documents. It also has the policy's ``cache`` field: a verdict from the cache may be valid for one policy and too old
for another. A policy with side effects has no key: its calls are never shared, kept, prefetched or cancelled.

The memo also keeps fallbacks: stale verdicts, which count only if the call fails.
"""

from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.answer_source import CallRecord, Origin, Source
from gateway.engine.policy_call import CacheKey, PolicyCall
from gateway.engine.verdicts import Verdict


class MemoEntry(Struct, eq=False):
    """A verdict, and the call that it is of. ``used``: a turn has used it; for the turns after it, the source is the
    memo.
    """

    verdict: Verdict
    origin: Origin
    call: CallRecord
    prefetched: bool
    used: bool

    def use(self) -> Origin:
        """Mark the entry as used, and return the origin for the turn that uses it."""
        origin = replace(self.origin, source=Source.MEMO) if self.used else self.origin
        self.used = True
        return origin


class Fallback(Struct, frozen=True, kw_only=True):
    """A stale verdict; ``origin.age`` is its age at ``received_at``."""

    verdict: Verdict
    origin: Origin
    received_at: float

    def origin_at(self, now: float) -> Origin:
        """The origin, with the verdict's age now."""
        return Origin(source=Source.STALE, age=self.origin.age + max(now - self.received_at, 0.0))


class Memo(Struct, eq=False):
    """Open calls and verdicts by key.

    ``calls`` are the open calls, ``shared`` those of them with a key, by key. ``entries`` are the verdicts of this
    review, ``fallbacks`` the stale verdicts for failed calls. CallTracker reads them directly; the key None of a call
    with side effects is never in them.
    """

    calls: dict[PolicyCall, None] = {}
    shared: dict[CacheKey | None, PolicyCall] = {}
    entries: dict[CacheKey | None, MemoEntry] = {}
    fallbacks: dict[CacheKey | None, Fallback] = {}

    def open(self, call: PolicyCall) -> None:
        """Add an open call."""
        self.calls[call] = None
        if call.key is not None:
            self.shared[call.key] = call

    def take(self, call: PolicyCall) -> bool:
        """Remove an open call. False: it was not open any more."""
        if call not in self.calls:
            return False
        del self.calls[call]
        if call.key is not None and self.shared.get(call.key) is call:
            del self.shared[call.key]
        return True

    def keep(self, call: PolicyCall, verdict: Verdict, origin: Origin, record: CallRecord) -> None:
        """Keep a verdict; it counts as used if turns waited for it."""
        if call.key is not None:
            used = bool(call.invocations)
            self.entries[call.key] = MemoEntry(
                verdict=verdict, origin=origin, call=record, prefetched=call.prefetched, used=used
            )

    def fall_back(self, call: PolicyCall, fallback: Fallback) -> None:
        """Keep a stale verdict under this call's key; ignored if the call was given up."""
        if call.key is not None and call in self.calls:
            self.fallbacks[call.key] = fallback

    def give_up(self) -> list[PolicyCall]:
        """Remove all open calls. Returns those that can be cancelled."""
        cancellable = [call for call in self.calls if call.cancellable]
        self.calls.clear()
        self.shared.clear()
        return cancellable
