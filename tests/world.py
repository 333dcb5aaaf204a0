"""Drives the engine: a clock that jumps, and workers with scripted latencies."""

import heapq
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.cel.authorization import Authorization
from gateway.cel.program import Evaluation, NeedsAuthorization
from gateway.engine.answer_source import Origin, Source
from gateway.engine.decision import Decision
from gateway.engine.engine import Engine
from gateway.engine.plan import Described, Plan, make_plan
from gateway.engine.policy_call import PolicyCall
from gateway.engine.steps import AuthorizationLookup, EvaluationLookup, Lookup, NamespaceLookup, Step
from gateway.engine.verdicts import Allow, Answer, Change, ChangeKind, Verdict
from gateway.policies.model import MatchCondition, Phase, Policy, Rule
from gateway.review.request import Request, decode

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


def plan(*policies: Policy, availabilities: Mapping[str, Any] | None = None, registered: bool = False) -> Plan:
    """A plan in which every policy is described as version 1."""
    phase = policies[0].phase if policies else Phase.MUTATING
    known = (
        {each.qualified_name: Described(version="1") for each in policies} if availabilities is None else availabilities
    )
    return make_plan(phase, policies, known, registered=registered)


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """A condition that needs no CEL: ``value`` is its outcome, or gives it for the variables and authorizations."""

    value: Any
    expression: str = "scripted"
    error: str | None = None
    cost: int = 1

    def evaluate(self, variables, authorizations, share=None):
        outcome = self.value(variables, authorizations) if callable(self.value) else self.value
        return Evaluation(outcome=outcome, cost=self.cost)


QUADRATIC: Final = "object.items.all(one, object.items.exists(other, other == one))"
"""An expression that takes long: 100,000 of cost for the 200 items of ``large``."""


def large(number: int = 200) -> Request:
    """A request for an object with so many items."""
    return request({"metadata": {"name": "p", "labels": {}}, "items": [str(each) for each in range(number)]})


def condition(value: Any, name: str = "scripted", **fields: Any) -> MatchCondition:
    """A matchCondition that is true, false, an EvaluationError, or what a function says."""
    return MatchCondition(name=name, condition=Scripted(value=value, **fields))


def when_authorized(check: Any) -> Callable[[Any, Any], Any]:
    """A condition's value: whether a check is allowed; an unknown one is not."""

    def value(_variables: Any, authorizations: Mapping[Any, Authorization]) -> Any:
        said = authorizations.get(check)
        return NeedsAuthorization(check=check) if said is None else said.allowed

    return value


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
    """Runs an engine to its decision. ``behaviours`` maps a policy's short name to what its worker answers to a
    document.

    ``latencies`` are seconds (infinite: never). ``fallbacks`` maps a policy's short name to a stale verdict that is at
    hand as soon as it is called, and its age in seconds. Every call and cancel is kept, with its time.
    """

    behaviours: Mapping[str, Behaviour | Answer]
    latencies: Mapping[str, float] = field(default_factory=dict)
    fallbacks: Mapping[str, tuple[Verdict, float]] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)
    authorizations: Mapping[Any, Authorization] = field(default_factory=dict)
    lookup_latency: float = 0.0
    now: float = 100.0
    calls: list[tuple[float, PolicyCall]] = field(default_factory=list)
    cancels: list[tuple[float, int]] = field(default_factory=list)
    lookups: list[Lookup] = field(default_factory=list)
    events: list[tuple[float, int, Callable[[float], Step]]] = field(default_factory=list)
    wake_at: float | None = None
    sequence: Any = field(default_factory=itertools.count)

    def decide(self, engine: Engine) -> Decision:
        """Let everything happen, in order of time; a timer before an answer of the same instant."""
        step = engine.start(self.now)
        while (decision := self.follow(step, engine)) is None:
            if self.wake_at is not None and (not self.events or self.wake_at <= self.events[0][0]):
                self.now = max(self.now, self.wake_at)
                step = engine.expired(self.now)
            else:
                assert self.events, "the engine waits for nothing"
                self.now, _, event = heapq.heappop(self.events)
                step = event(self.now)
        return decision

    def follow(self, step: Step, engine: Engine) -> Decision | None:
        """Do what a step says."""
        self.wake_at = step.wake_at
        self.cancels += [(self.now, cancelled.id) for cancelled in step.cancels]
        for call in step.calls:
            self.calls.append((self.now, call))
            if call.policy.policy in self.fallbacks:
                self._at(self.now, self._fall_back(engine, call))
            after = self.latencies.get(call.policy.policy, 0.0)
            if after != float("inf"):
                self._at(self.now + after, self._answer(engine, call))
        for lookup in step.lookups:
            self.lookups.append(lookup)
            if self.lookup_latency != float("inf"):
                self._at(self.now + self.lookup_latency, self._find(engine, lookup))
        return step.decision

    def _fall_back(self, engine: Engine, call: PolicyCall) -> Callable[[float], Step]:
        verdict, age = self.fallbacks[call.policy.policy]
        return lambda now: engine.fallback(call, verdict, Origin(source=Source.STALE, age=age), now)

    def _find(self, engine: Engine, lookup: Lookup) -> Callable[[float], Step]:
        match lookup:
            case NamespaceLookup(namespace=namespace):
                fact: Any = self.namespaces.get(namespace)
            case AuthorizationLookup(check=check):
                fact = self.authorizations.get(check, Authorization())
            case EvaluationLookup(need=need):
                fact = need.finish()
        return lambda now: engine.found(lookup.id, fact, now)

    def _answer(self, engine: Engine, call: PolicyCall) -> Callable[[float], Step]:
        def event(now: float) -> Step:
            behaviour = self.behaviours[call.policy.policy]
            answer = behaviour(json.loads(call.document.content)) if callable(behaviour) else behaviour
            return engine.answered(call, answer, now)

        return event

    def _at(self, when: float, event: Callable[[float], Step]) -> None:
        heapq.heappush(self.events, (when, next(self.sequence), event))

    def called(self) -> list[str]:
        """The short names of the policies called, in order."""
        return [call.policy.policy for _, call in self.calls]


def canceled(policies: Sequence[Policy], *, on: Request | None = None, after: float = 2.5, **options: Any) -> Decision:
    """What is recorded of a review whose client hangs up so many seconds after all workers were called."""
    engine = Engine(on or request(), plan(*policies), ends=110.0, received=100.0, **options)
    engine.start(100.0)
    decision = engine.abandoned(100.0 + after).decision
    assert decision is not None
    return decision


def decide(
    policies: Sequence[Policy],
    behaviours: Mapping[str, Behaviour | Answer],
    *,
    on: Request | None = None,
    budget: float = 10.0,
    registered: bool = False,
    prefetch: bool = False,
    **world: Any,
) -> tuple[Decision, World]:
    """Decide a review by these policies, in a world of its own; called in their turns, unless ``prefetch``."""
    made = World(behaviours=behaviours, **world)
    judges = plan(*policies, registered=registered)
    engine = Engine(on or request(), judges, ends=made.now + budget, prefetch=prefetch)
    return made.decide(engine), made
