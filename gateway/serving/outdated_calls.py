"""Calls by an outdated registration: of former entries, and of entries in a revision that this process does not know.

A former entry is kept for as long as it may be called: until a day has passed without a call of it. An API server has a
new registration within a second of its being applied, so the day is for the registration that is not applied, whose
entries are called as seldom as what they match is created. Memory is bounded by the number of policies instead.
"""

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final

import structlog

from gateway.registration.former_entries import FormerEntry
from gateway.serving.plans import Target
from gateway.telemetry.events import Events
from gateway.telemetry.table import FORMER_ENTRY_POLICIES, LIMIT_HITS, OUTDATED_ENTRY_REVIEWS

_LOG: Final = structlog.get_logger(__name__)

KEPT_SECONDS: Final = 86_400.0
"""How long a former entry is kept after its last call, or after it became one: a day. It ends at the next reload."""

KEPT_POLICIES: Final = 10_000
"""The policies of all former entries together, each counting in each of them, and an entry as one more. A policy takes
about 1 KB in a plan and its index, so 10 MB: a hundred new registrations of 100 policies in a day. Above, the former
entries that were called longest ago end."""

_SHOWN_SECONDS: Final = 600.0
"""How long a call is shown on /readyz?verbose."""

_SHOWN: Final = 10
"""The paths that /readyz?verbose shows at most."""


class OutdatedCalls:
    """Records these calls.

    Args:
        events: counts them.
        now: returns seconds of a clock that never goes back.
    """

    def __init__(self, events: Events, now: Callable[[], float] = monotonic) -> None:
        self._events = events
        self._now = now
        # By target: the last call, or the time at which the entry became a former one.
        self._since: dict[Target, float] = {}
        self._called: dict[Target, float] = {}

    def called(self, target: Target) -> None:
        """A review was decided that called this target. A target is one of the configuration, so they are bounded."""
        self._events.count(OUTDATED_ENTRY_REVIEWS, target.phase, target.entry or "")
        if target not in self._called:
            _LOG.warning(
                "kube-apiserver has an outdated registration; apply what `admission-gateway render` prints",
                path=target.path,
                phase=target.phase.value,
                entry=target.entry,
            )
        self._called[target] = self._since[target] = self._now()

    def kept(self, former: Iterable[FormerEntry]) -> tuple[FormerEntry, ...]:
        """The former entries of a new configuration that are kept, in the same order."""
        entries = {Target(*each.key): each for each in former}
        now = self._now()
        self._since = {target: self._since.get(target, now) for target in entries}
        kept, left = set[Target](), KEPT_POLICIES
        for target in sorted(entries, key=lambda target: -self._since[target]):
            left -= len(entries[target].policies) + 1
            if now - self._since[target] < KEPT_SECONDS and left >= 0:
                kept.add(target)
        if left < 0:
            self._events.count(LIMIT_HITS, FORMER_ENTRY_POLICIES)
            _LOG.warning("too many former entries: those called longest ago end", limit=KEPT_POLICIES)
        self._called = {target: when for target, when in self._called.items() if now - when < KEPT_SECONDS}
        return tuple(each for target, each in entries.items() if target in kept)

    @property
    def note(self) -> str | None:
        """What is called by an outdated registration; None: nothing is."""
        now = self._now()
        paths = [target.path for target, when in self._called.items() if now - when < _SHOWN_SECONDS]
        if not paths:
            return None
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        return (
            f"kube-apiserver called {', '.join(paths[:_SHOWN])}{more} of an outdated registration in the last "
            f"{_SHOWN_SECONDS / 60:g} minutes; apply what `admission-gateway render` prints"
        )
