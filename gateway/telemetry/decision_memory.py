"""The decisions of this process that are retained: for ``/explain`` and the dashboard.

A decision is retained as it is and rendered when somebody asks, so a review pays for an append. The oldest go first, of
two halves: the refused, and those with a failure, do not make room for the many that all policies allowed, or that
clients canceled.

What a decision occupies is estimated (``_size``). It keeps the bytes of its request alive, so a large one is reduced
first: it is retained without the objects and the parts of answers that only they explain, rather than not at all. It
also keeps its plan alive. After many reloads these would be many configurations, so their policies are bounded too.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from msgspec import Raw, Struct
from msgspec.structs import replace

from gateway.engine.decision import Decision, Outcome
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.plan import Plan
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.patching.difference import Operation
from gateway.review.request import Request
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.table import (
    REDUCED_DECISIONS,
    RETAINED_DECISION_BYTES,
    RETAINED_DECISIONS,
    RETAINED_DECISIONS_OLDEST,
)

LARGE_SHARE: Final = 64
"""A decision above this share of all bytes, 1 MiB by default, is reduced: with three of the largest reviews, 20 MB
each, nothing else would fit."""

POLICIES: Final = 20_000
"""Policies of all retained plans together: ten versions of a configuration of 2,000, at 2 to 5 KB each."""

_LARGE_MEMBERS: Final = frozenset({"object", "oldObject", "options"})
_TEXT: Final = 2_000
_ITEMS: Final = 100
"""Characters of a text, and members of a list, of a reduced decision: as much as its document would show."""

NOT_RETAINED: Final = "(not retained: the review is too large)"
"""Instead of the values of a reduced decision's changes."""

_EMPTY_BYTES: Final = 8_000
"""A decision without its object: request, response, records of two policies."""

_PARSED: Final = 8
"""How many times its JSON text a parsed object occupies: measured 7 to 9 for pods."""

_VALUE_BYTES: Final = 89
"""What a JSON value, or a name, occupies where there is little else, measured: of nested brackets 45 times the text."""


class _Retained(NamedTuple):
    decision: Decision
    size: int
    plan: "_RetainedPlan"


class _RetainedPlan(Struct, eq=False):
    """A plan, and how many retained decisions have it."""

    plan: Plan
    decisions: int = 0


class DecisionMemory:
    """Retains decisions. A DecisionObserver.

    Args:
        decisions: the most; of each half at least one.
        size: the most bytes, estimated.
        events: counts reduced decisions, and how many are retained when ``observe`` is called.
    """

    def __init__(self, decisions: int = 2_000, size: int = 64_000_000, *, events: Events | None = None) -> None:
        self._events = events or NoEvents()
        self._each = max(decisions // 2, 1)
        self._half = size // 2
        self._large = size // LARGE_SHARE
        self._allowed = _Ring()
        self._refused = _Ring()
        self._complete_from = time.monotonic()
        self._plans: dict[int, _RetainedPlan] = {}
        self._policies = 0

    def decided(self, decision: Decision) -> None:
        """Retain a decision."""
        ring = self._refused if _is_notable(decision) else self._allowed
        size = _size(decision)
        if size > self._large:
            decision = reduced(decision)
            size = min(_size(decision), self._large)
            self._events.count(REDUCED_DECISIONS)
        plan = self._plan(decision.plan)
        plan.decisions += 1
        ring.items.append(_Retained(decision, size, plan))
        ring.size += size
        while len(ring.items) > self._each or ring.size > self._half:
            self._evict(ring)
        while self._policies > POLICIES and len(self._plans) > 1:
            self._evict(self._oldest())

    def newest(self) -> Iterator[Decision]:
        """The retained decisions, the newest first."""
        rings = ((each.decision for each in reversed(ring.items)) for ring in (self._refused, self._allowed))
        return merge(*rings, key=lambda decision: -decision.ended)

    def find(self, uid: str) -> Sequence[Decision]:
        """The decisions of the reviews with this uid, in the order in which they were made."""
        found = [each.decision for ring in (self._allowed, self._refused) for each in ring.items]
        return sorted((each for each in found if each.request.uid == uid), key=lambda each: each.ended)

    def __len__(self) -> int:
        """How many are retained."""
        return len(self._allowed.items) + len(self._refused.items)

    @property
    def size(self) -> int:
        """Their bytes, estimated."""
        return self._allowed.size + self._refused.size

    @property
    def since(self) -> float:
        """The Unix time since which every refused or failed decision is retained: the start, until one is evicted."""
        return time.time() - time.monotonic() + self._complete_from

    def observe(self) -> None:
        """Set the gauges."""
        self._events.set(RETAINED_DECISIONS, len(self))
        self._events.set(RETAINED_DECISION_BYTES, self.size)
        self._events.set(RETAINED_DECISIONS_OLDEST, self.since)

    # -------------------------------------------------------------------------------------------------- plans

    def _plan(self, plan: Plan) -> _RetainedPlan:
        known = self._plans.get(id(plan))
        if known is None:
            # Its id stays its own for as long as it is here.
            known = self._plans[id(plan)] = _RetainedPlan(plan)
            self._policies += len(plan.members)
        return known

    def _evict(self, ring: "_Ring") -> None:
        oldest = ring.items.popleft()
        ring.size -= oldest.size
        if ring is self._refused:
            self._complete_from = oldest.decision.ended
        oldest.plan.decisions -= 1
        if not oldest.plan.decisions:
            plan = oldest.plan.plan
            self._policies -= len(plan.members)
            del self._plans[id(plan)]

    def _oldest(self) -> "_Ring":
        rings = [ring for ring in (self._allowed, self._refused) if ring.items]
        return min(rings, key=lambda ring: ring.items[0].decision.ended)


class _Ring:
    """Decisions, the newest last, and their bytes."""

    __slots__ = ("items", "size")

    def __init__(self) -> None:
        self.items: deque[_Retained] = deque()
        self.size = 0


def reduced(decision: Decision) -> Decision:
    """The decision without its objects, with the beginnings of long texts and of long lists of changes."""
    request, response = decision.request, decision.response
    # Copies: each member is a view of the whole body.
    kept = {name: Raw(bytes(raw)) for name, raw in request.members.items() if name not in _LARGE_MEMBERS}
    status = response.status
    return replace(
        decision,
        request=Request(request.api_version, kept),
        response=replace(
            response,
            patch=None,
            status=None if status is None else replace(status, message=status.message[:_TEXT], details=None),
            warnings=tuple(text[:_TEXT] for text in response.warnings[:_ITEMS]),
            audit_annotations={key: text[:_TEXT] for key, text in islice(response.audit_annotations.items(), _ITEMS)},
        ),
        patch=_reduced_changes(decision.patch),
        changed_object=None,
        object_state=None,
        sampled_calls=(),
        calls=tuple(_reduced_call(call) for call in decision.calls),
    )


def _reduced_call(call: InvocationRecord) -> InvocationRecord:
    answer = call.answer
    if answer is not None:
        answer = replace(answer, warnings=(), audit_annotations={})
    if isinstance(answer, Allow):
        answer = replace(answer, change=None)
    elif isinstance(answer, Deny | Failure):
        answer = replace(answer, message=answer.message[:_TEXT], details=None)
    return replace(
        call,
        answer=answer,
        changes=_reduced_changes(call.changes),
        would_change=_reduced_changes(call.would_change),
        conflicts=call.conflicts[:_ITEMS],
    )


def _reduced_changes(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    return tuple(replace(each, value=NOT_RETAINED) for each in operations[:_ITEMS] if len(each.path) <= _TEXT)


def _is_notable(decision: Decision) -> bool:
    if not decision.response.allowed and decision.outcome is not Outcome.CANCELED:
        return True
    for call in decision.calls:  # noqa: SIM110 - a generator costs each review half a microsecond
        if isinstance(call.answer, Failure):
            return True
    return False


def _size(decision: Decision) -> int:
    """Estimated bytes: the request's, parsed objects, and what the workers wrote."""
    request, response = decision.request, decision.response
    size = _EMPTY_BYTES + request.size
    if request.is_parsed:
        size += max(_PARSED * request.size, _VALUE_BYTES * request.values)
    if response.patch is not None:
        size += _PARSED * len(response.patch)
    if response.status is not None:
        size += len(response.status.message)
    if response.warnings or response.audit_annotations:
        size += sum(map(len, response.warnings)) + sum(map(len, response.audit_annotations.values()))
    return size
