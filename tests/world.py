"""A world for the heart to live in: a clock that jumps, and workers that answer after as long as they are told to."""

import heapq
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.deciding import (
    Allow,
    Answer,
    Ask,
    Change,
    ChangeKind,
    Decision,
    Heart,
    NamespaceLookup,
    Plan,
    Step,
    make_plan,
)
from gateway.policies import Phase, Policy, Rule
from gateway.review import Request, decode

PODS = Rule(operations=("*",), api_groups=("",), api_versions=("v1",), resources=("pods",))


def policy(name: str, *, phase: Phase = Phase.MUTATING, index: int = 0, **fields: Any) -> Policy:
    """A policy on pods, named NAME.test.example.com, in configuration "test"."""
    defaults: dict[str, Any] = {
        "phase": phase,
        "configuration": "test",
        "index": index,
        "name": f"{name}.test.example.com",
        "worker": f"worker-{name}",
        "policy": name,
        "rules": (PODS,),
        "timeout": 5.0,
    }
    return Policy(**(defaults | fields))


def plan(*policies: Policy, standings: Mapping[str, Any] | None = None) -> Plan:
    """A plan in which everybody is described as version 1."""
    phase = policies[0].phase if policies else Phase.MUTATING
    known = {each.qualified_name: "1" for each in policies} if standings is None else standings
    return make_plan(phase, policies, known)


def request(obj: Any = None, **members: Any) -> Request:
    """A request about a pod."""
    base = {
        "uid": "u1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "t",
        "operation": "CREATE",
        "object": {"metadata": {"name": "p", "labels": {}}} if obj is None else obj,
        "oldObject": None,
        "dryRun": False,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": base | members}
    return decode(json.dumps(review).encode())


def patch(*operations: dict[str, Any], **fields: Any) -> Allow:
    """An allow with a JSON Patch."""
    return Allow(change=Change(kind=ChangeKind.JSON_PATCH, content=json.dumps(operations).encode()), **fields)


def label(key: str, value: str = "1") -> Allow:
    """An allow that adds a label."""
    return patch({"op": "add", "path": f"/metadata/labels/{key}", "value": value})


Behaviour = Callable[[dict[str, Any]], Answer]


@dataclass(kw_only=True)
class World:
    """Runs a heart to its decision. ``behaviours`` maps a policy's short name to what its worker answers to a document.

    ``latencies`` are seconds (infinite: never). Every ask and cancel is kept, with its time.
    """

    behaviours: Mapping[str, Behaviour | Answer]
    latencies: Mapping[str, float] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)
    now: float = 100.0
    asks: list[tuple[float, Ask]] = field(default_factory=list)
    cancels: list[tuple[float, int]] = field(default_factory=list)
    lookups: list[NamespaceLookup] = field(default_factory=list)
    events: list[tuple[float, int, Callable[[float], Step]]] = field(default_factory=list)
    wake_at: float | None = None
    sequence: Any = field(default_factory=itertools.count)

    def decide(self, heart: Heart) -> Decision:
        """Let everything happen, in order of time; a timer before an answer of the same instant."""
        step = heart.start(self.now)
        while (decision := self.follow(step, heart)) is None:
            if self.wake_at is not None and (not self.events or self.wake_at <= self.events[0][0]):
                self.now = max(self.now, self.wake_at)
                step = heart.expired(self.now)
            else:
                assert self.events, "the heart waits for nothing"
                self.now, _, event = heapq.heappop(self.events)
                step = event(self.now)
        return decision

    def follow(self, step: Step, heart: Heart) -> Decision | None:
        """Do what a step says."""
        self.wake_at = step.wake_at
        self.cancels += [(self.now, cancelled) for cancelled in step.cancels]
        for ask in step.asks:
            self.asks.append((self.now, ask))
            after = self.latencies.get(ask.policy.policy, 0.0)
            if after != float("inf"):
                self._at(self.now + after, self._answer(heart, ask))
        for lookup in step.lookups:
            self.lookups.append(lookup)
            labels = self.namespaces.get(lookup.namespace)
            self._at(self.now, lambda now, lookup=lookup, labels=labels: heart.found(lookup.id, labels, now))
        return step.decision

    def _answer(self, heart: Heart, ask: Ask) -> Callable[[float], Step]:
        behaviour = self.behaviours[ask.policy.policy]

        def event(now: float) -> Step:
            answer = behaviour(json.loads(ask.document.content)) if callable(behaviour) else behaviour
            return heart.answered(ask.id, answer, now)

        return event

    def _at(self, when: float, event: Callable[[float], Step]) -> None:
        heapq.heappush(self.events, (when, next(self.sequence), event))

    def asked(self) -> list[str]:
        """The short names of the policies asked, in order."""
        return [ask.policy.policy for _, ask in self.asks]


def decide(
    policies: Sequence[Policy],
    behaviours: Mapping[str, Behaviour | Answer],
    *,
    on: Request | None = None,
    budget: float = 10.0,
    **world: Any,
) -> tuple[Decision, World]:
    """Decide a review by these policies, in a world of its own."""
    made = World(behaviours=behaviours, **world)
    heart = Heart(on or request(), plan(*policies), ends=made.now + budget)
    return made.decide(heart), made
