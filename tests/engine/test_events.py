"""Events in any order: early, late, repeated and unknown answers, timers at odd times.

The driver cannot always cancel in time, a clock may be coarse, and a cache answers before a worker. So a world that
keeps to nothing drives the engine here, with few workers for many policies, so that their questions meet.
"""

import json
import random
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import pytest
from hypothesis import settings

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.documents.documents import hashed
from gateway.engine.answer_source import Origin, Source
from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.policy_call import PolicyCall
from gateway.engine.steps import NamespaceLookup
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.patching.equality import equal
from gateway.policies.model import (
    Cache,
    FailurePolicy,
    Mode,
    OnConflict,
    Phase,
    Policy,
    ReinvocationPolicy,
    Requirement,
    Selector,
    SideEffects,
)
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from tests.world import condition, label, patch, plan, policy, request, when_authorized

LABELS = ("x", "y")
ENDS = 10.0
CHECK = AuthorizationCheck(verb="get", resource="pods")
REASONS = (Reason.WORKER_FAILURE, Reason.WORKER_TIMEOUT, Reason.OVERLOADED, Reason.INTERNAL)
CACHED = {Source.MEMORY, Source.REDIS, Source.STALE}
FOREIGN = PolicyCall(
    id=1,
    policy=policy("foreign"),
    document=hashed(b"{}"),
    deadline=ENDS,
    uid="another review's",
    cancellable=True,
)
BOTH = pytest.mark.parametrize("phase", list(Phase))


@dataclass(kw_only=True)
class Chaos:
    """One review in which anything may happen; what the engine says is checked as it says it."""

    rng: random.Random
    engine: Engine
    now: float = 0.0
    calls: dict[int, Any] = field(default_factory=dict)
    lookups: dict[int, Any] = field(default_factory=dict)
    answered: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)
    wake_at: float | None = None
    decision: Any = None
    over: bool = False

    def run(self) -> "Chaos":
        self.take(self.engine.start(self.now))
        events = [self.answer, self.answer, self.answer, self.fall_back, self.find, self.ring, self.wait]
        for _ in range(self.rng.randint(0, 25)):
            self.rng.choice(events)()
        return self

    def to_the_end(self) -> "Chaos":
        """From now on nothing comes but the timer."""
        for _ in range(100):
            if self.over:
                return self
            self.now = max(self.now, self.wake_at)
            self.take(self.engine.expired(self.now))
        raise AssertionError("the engine never decides")

    def afterwards(self) -> None:
        """What comes when all is over changes nothing: ``take`` sees to it."""
        for event in (self.answer, self.fall_back, self.find, self.ring):
            event()

    def take(self, step: Any) -> None:
        if self.over:
            assert (step.decision, step.calls, step.lookups, step.cancels) == (None, (), (), ())
            return
        for call in step.cancels:
            assert self.calls[call.id] is call
            assert call.cancellable
            assert call.id not in self.cancelled | self.answered
            self.cancelled.add(call.id)
        for each in (*step.calls, *step.lookups):
            assert each.id not in self.calls | self.lookups
        self.calls |= {policy_call.id: policy_call for policy_call in step.calls}
        self.lookups |= {lookup.id: lookup for lookup in step.lookups}
        assert all(self.now < policy_call.deadline <= ENDS for policy_call in step.calls)
        self.wake_at, self.decision = step.wake_at, step.decision
        self.over = step.decision is not None
        assert (self.wake_at is None) is self.over
        assert self.over or self.wake_at <= ENDS

    def some(self, known: dict[int, Any]) -> int:
        """An id: one that is known, perhaps long over, or one that never was."""
        return self.rng.choice([*known, *known, *known, 999])

    def answer(self) -> None:
        call_id = self.some(self.calls)
        policy_call = self.calls.get(call_id)
        sources = (
            [Source.CALLED]
            if policy_call is None or policy_call.cache is None
            else [Source.CALLED, Source.MEMORY, Source.REDIS]
        )
        source = self.rng.choice(sources)
        origin = Origin(source=source, age=0.0 if source is Source.CALLED else 3.0)
        said = self.said()
        self.take(self.engine.answered(policy_call or FOREIGN, said, self.now, origin))
        self.answered.add(call_id)

    def said(self) -> Any:
        key = self.rng.choice(LABELS)
        remove = patch({"op": "remove", "path": f"/metadata/labels/{key}"})
        reason = self.rng.choice(REASONS)
        failure = Failure(reason=reason, message="it broke")
        return self.rng.choice([Allow(), label(key), label(key, "2"), remove, failure, failure, Deny(message="no")])

    def fall_back(self) -> None:
        call_id = self.some(self.calls)
        policy_call = self.calls.get(call_id)
        if policy_call is None or policy_call.cache is not None:
            origin = Origin(source=Source.STALE, age=9.0)
            self.take(
                self.engine.fallback(policy_call or FOREIGN, self.rng.choice([Allow(), label("x")]), origin, self.now)
            )

    def find(self) -> None:
        lookup_id = self.some(self.lookups)
        found: Any = Authorization(allowed=self.rng.random() < 0.7)
        if isinstance(self.lookups.get(lookup_id), NamespaceLookup):
            found = self.rng.choice([None, {}, {"x": "1"}])
        self.take(self.engine.found(lookup_id, found, self.now))

    def ring(self) -> None:
        """Too early, in time, or too late."""
        if self.wake_at is not None and self.rng.random() < 0.5:
            self.now = max(self.now, self.wake_at)
        self.take(self.engine.expired(self.now))

    def wait(self) -> None:
        self.now += self.rng.choice([0.0, 0.3, 1.0, 2.5])


def chaos(seed: int, phase: Phase) -> tuple[Chaos, list[Policy]]:
    rng = random.Random(seed)
    chain = [_policy(rng, index, phase) for index in range(rng.randint(1, 5))]
    engine = Engine(_request(rng), plan(*chain), ends=ENDS, prefetch=rng.random() < 0.8)
    return Chaos(rng=rng, engine=engine), chain


def _request(rng: random.Random) -> Any:
    labels = {key: "0" for key in LABELS if rng.random() < 0.4}
    return request({"metadata": {"name": "p", "labels": labels}}, dryRun=rng.random() < 0.3)


def _policy(rng: random.Random, index: int, phase: Phase) -> Policy:
    requirement = Requirement(key=rng.choice(LABELS), operator=rng.choice(["Exists", "DoesNotExist"]))
    selector = Selector(requirements=(requirement,))
    shown = Inputs(places=PointerSet([("object", "metadata", "labels", key) for key in LABELS[: rng.randint(0, 1)]]))
    return policy(
        f"p{index}",
        phase=phase,
        index=index,
        worker="one",
        policy=rng.choice("ab"),
        timeout=rng.choice([0.5, 2.0, 5.0, 30.0]),
        failure_policy=rng.choice(list(FailurePolicy)),
        reinvocation_policy=rng.choice(list(ReinvocationPolicy)),
        side_effects=rng.choice([SideEffects.NONE, SideEffects.NONE, *SideEffects]),
        mode=rng.choice([Mode.ENFORCE, Mode.ENFORCE, *Mode]),
        on_conflict=rng.choice(list(OnConflict)),
        cache=rng.choice([None, Cache(ttl=60.0), Cache(ttl=60.0), Cache(ttl=5.0)]),
        inputs=rng.choice([Inputs.EVERYTHING, shown, shown]),
        object_selector=selector if rng.random() < 0.2 else Selector(),
        namespace_selector=selector if rng.random() < 0.2 else Selector(),
        match_conditions=(condition(when_authorized(CHECK)),) if rng.random() < 0.1 else (),
    )


def chaoses(phase):
    return (chaos(seed, phase) for seed in range(3 * settings().max_examples))


@pytest.mark.property
@BOTH
def test_a_review_is_decided_once_whatever_happens_and_leaves_nothing_open(phase):
    """At the latest when its budget ends; and every call that can be is answered or cancelled by then."""
    for world, _ in chaoses(phase):
        world.run().to_the_end()
        assert world.decision.ended <= max(ENDS, world.now)
        open_calls = world.calls.keys() - world.answered - world.cancelled
        assert not any(world.calls[call_id].cancellable for call_id in open_calls)
        assert world.engine.broken("again", world.now).decision is None
        world.afterwards()


@pytest.mark.property
@BOTH
def test_no_policy_is_skipped_and_failures_are_reported(phase):
    """Each policy has its turn unless an earlier one refused; a refusal and an allow exclude each other."""
    for world, chain in chaoses(phase):
        decision = world.run().to_the_end().decision
        refusing = [call for call in decision.calls if call.refuses]
        assert decision.response.allowed is (not refusing)
        if not refusing or phase is Phase.VALIDATING:
            assert [call.index for call in decision.calls if call.round == 0] == list(range(len(chain)))
        assert all((call.answer is not None) is call.matched for call in decision.calls)
        for call in decision.calls:
            if call.failed_open:
                assert any(text.startswith(call.label) for text in decision.response.warnings)


@pytest.mark.property
@BOTH
def test_another_reviews_verdict_is_only_for_policies_with_a_cache(phase):
    """Although a policy without one puts the same question in this review."""
    for world, _ in chaoses(phase):
        for call in world.run().to_the_end().decision.calls:
            assert not (call.source in CACHED and call.policy.cache is None)
            assert not (call.age and call.policy.cache is None)


@pytest.mark.property
def test_the_patch_gives_what_was_predicted_whatever_happens():
    """Applied by another library to what came."""
    for world, _ in chaoses(Phase.MUTATING):
        decision = world.run().to_the_end().decision
        if decision.response.patch is not None:
            patched = jsonpatch.apply_patch(decision.request.object, json.loads(decision.response.patch))
            assert equal(patched, decision.object)


@pytest.mark.property
@BOTH
def test_who_hangs_up_leaves_nothing_open_and_no_more_is_called(phase):
    """At any moment."""
    for world, chain in chaoses(phase):
        world.run()
        if world.over:
            continue
        step = world.engine.abandoned(world.now)
        left = world.calls.keys() - world.answered - world.cancelled
        assert {call.id for call in step.cancels} == {call_id for call_id in left if world.calls[call_id].cancellable}
        assert (step.calls, step.lookups, step.wake_at) == ((), (), None)
        decision = step.decision
        assert (decision.outcome, decision.response.allowed, decision.patch) == (Outcome.CANCELED, False, ())
        known = [each.index for each in decision.all_calls if each.round == 0]
        assert known == list(range(len(known) if phase is Phase.MUTATING else len(chain)))
        world.over = True
        world.afterwards()


@pytest.mark.property
@BOTH
def test_an_internal_error_decides_at_once(phase):
    """At any moment: verdicts stay, every other policy is a failure INTERNAL, and no policy is called."""
    for world, _ in chaoses(phase):
        world.run()
        if world.over:
            continue
        world.take(world.engine.broken("a defect", world.now))
        decision = world.decision
        assert decision is not None
        assert decision.response.allowed is not any(call.refuses for call in decision.calls)
        open_calls = world.calls.keys() - world.answered - world.cancelled
        assert not any(world.calls[call_id].cancellable for call_id in open_calls)


@BOTH
def test_after_an_internal_error_no_policy_is_called(phase):
    """The first policy's call was made in the event that failed: the engine does not wait for its answer."""

    def defect(_variables, _authorizations):
        raise RuntimeError("a defect")

    chain = [policy("a", phase=phase), policy("b", phase=phase, index=1, match_conditions=(condition(defect),))]
    engine = Engine(request(), plan(*chain), ends=ENDS)
    with pytest.raises(RuntimeError):
        engine.start(0.0)
    step = engine.broken("a defect", 0.0)
    assert (step.calls, step.lookups, step.cancels) == ((), (), ())
    assert [call.answer.reason for call in step.decision.calls] == [Reason.INTERNAL] * (1 + (phase is Phase.VALIDATING))
