"""A large change is applied in slices, between which the driver serves others; the decision is the same."""

import json
from random import Random

from gateway.engine.decision import Outcome
from gateway.engine.engine import Engine
from gateway.engine.object_state import DIFFERENCE_STEPS, PATCH_WORK
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny
from gateway.patching.limits import PatchLimits
from gateway.policies.model import FailurePolicy, ReinvocationPolicy
from gateway.reasons import Reason
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import LIMIT_HITS
from tests.patching.test_work import counted
from tests.world import World, label, patch, plan, policy, request

VALUES = list(range(60_000))
LARGE = {"metadata": {"name": "p", "labels": {}}, "l": [{"n": value} for value in VALUES[:6_000]]}
MOST_SLICES = 20
"""Of one answer, and of the decision."""


def rewritten(seed):
    """An allow with the whole object, of which everything differs from every other such answer."""

    def answer(document):
        elements = Random(seed).sample(VALUES, 6_000)
        changed = document["object"] | {"l": [{"n": value} for value in elements]}
        return Allow(change=Change(kind=ChangeKind.OBJECT, content=json.dumps(changed).encode()))

    return answer


class SlowWorld(World):
    """Counts the work of each event, which raises if it is too much, and the wakings."""

    wakings = 0

    def decide(self, engine):
        """The decision; after each waking the time is a little later."""
        expired = engine.expired

        def woken(now):
            self.wakings += 1
            self.now += 0.001
            return counted(lambda: expired(now))

        engine.expired = woken
        return super().decide(engine)


def decided(chain, behaviours, *, ends=1_000.0, prefetch=True, on=LARGE):
    """The decision and the world."""
    world = SlowWorld(behaviours=behaviours)
    return world.decide(Engine(request(on), plan(*chain), ends=ends, prefetch=prefetch)), world


def test_a_small_change_has_no_slices():
    """A label on a small object is applied at once."""
    _, world = decided([policy("a")], {"a": label("one")}, on={"metadata": {"labels": {}}})
    assert world.wakings == 0


def test_twenty_large_changes_of_one_chain():
    """Twenty policies rewrite a large object, and are reinvoked: each event is little work, and all is decided."""
    chain = [
        policy(f"p{index}", index=index, reinvocation_policy=ReinvocationPolicy.IF_NEEDED, timeout=30.0)
        for index in range(20)
    ]
    decision, world = decided(chain, {f"p{index}": rewritten(index) for index in range(20)})
    assert decision.outcome is Outcome.ALLOWED
    assert 40 <= world.wakings <= 41 * MOST_SLICES
    assert len(decision.calls) == 40
    assert decision.patch[0].path.startswith("/l")


def test_the_slices_end_with_the_budget():
    """When the budget ends, the change under way is a failure; those before it count."""
    chain = [
        policy("a", failure_policy=FailurePolicy.IGNORE),
        policy("b", index=1, failure_policy=FailurePolicy.IGNORE),
    ]
    decision, _ = decided(chain, {"a": label("one"), "b": rewritten(1)}, ends=100.001)
    assert [getattr(each.answer, "reason", None) for each in decision.calls] == [None, Reason.BUDGET_EXHAUSTED]
    assert [each.path for each in decision.patch] == ["/metadata/labels/one"]


def test_an_exception_ends_the_slices():
    """Work that was under way when the engine broke is not continued."""
    engine = Engine(request(LARGE), plan(policy("a")), ends=1_000.0)
    call = engine.start(100.0).calls[0]
    step = engine.answered(call, rewritten(1)({"object": LARGE}), 100.0)
    assert (step.decision, step.wake_at) == (None, 100.0)
    decision = engine.broken("KeyError", 100.1).decision
    assert (decision.outcome, decision.calls[0].answer.reason) == (Outcome.FAILED, Reason.INTERNAL)
    assert engine.expired(100.2).decision is None


def test_an_answer_between_two_slices_is_kept():
    """A prefetched answer that arrives while another policy's change is applied is used in its turn."""
    engine = Engine(request(LARGE), plan(policy("a"), policy("b", index=1)), ends=1_000.0)
    first, second = engine.start(100.0).calls
    engine.answered(first, rewritten(1)({"object": LARGE}), 100.0)
    step = engine.answered(second, Deny(message="no"), 100.0)
    while step.decision is None:
        step = engine.expired(100.0) if not step.calls else engine.answered(step.calls[0], Deny(message="no"), 100.0)
    assert [type(each.answer) for each in step.decision.calls] == [Allow, Deny]


def test_a_limit_that_was_hit_is_known_to_the_metrics():
    """A patch that exceeds a limit, and a difference that ran out of steps, are counted by the limit's name."""
    doubling = patch(*[{"op": "copy", "from": "/l", "path": "/l/-"}] * 40)
    chain = [policy("a", failure_policy=FailurePolicy.IGNORE), policy("b", index=1)]
    decision, _ = decided(chain, {"a": doubling, "b": whole_array})
    assert decision.object_state.limits_hit == [PATCH_WORK, DIFFERENCE_STEPS]
    metrics = Metrics()
    metrics.know((each.policy for each in decision.plan.members), ())
    metrics.decided(decision)
    assert metrics.value(LIMIT_HITS, PATCH_WORK) == metrics.value(LIMIT_HITS, DIFFERENCE_STEPS) == 1


def test_a_change_longer_than_an_object_may_be_is_not_parsed():
    """However little it becomes: it is a failure with both sizes, and the limit is counted."""
    limits = PatchLimits(object_bytes=1_000)
    long = patch({"op": "add", "path": "/metadata/labels/one", "value": "\u00e9" * 200})
    world = World(behaviours={"a": long})
    engine = Engine(request(LARGE), plan(policy("a", failure_policy=FailurePolicy.IGNORE)), ends=1_000.0, limits=limits)
    decision = world.decide(engine)
    failure = decision.calls[0].answer
    assert failure.reason is Reason.INVALID_PATCH
    assert "bytes, and an object may have 1000; answer with a JSON Patch" in failure.message
    assert decision.object_state.limits_hit == [PATCH_WORK]


def whole_array(document):
    """An allow with another array of 20,000 objects, and each of them different."""
    changed = document["object"] | {"l": [{"n": -1, "m": index} for index in range(20_000)]}
    return Allow(change=Change(kind=ChangeKind.OBJECT, content=json.dumps(changed).encode()))
