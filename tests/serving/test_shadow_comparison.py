"""Shadows: another worker is called afterwards, its verdict is compared, and not enforced."""

import asyncio
import json

import pytest

from gateway.engine.plan import Described, Unavailable, UnavailableReason, make_plan
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.patching.limits import DEFAULT_LIMITS, PatchLimits
from gateway.policies.fields.shadows import shadow_of
from gateway.policies.model import Mode, Phase, ReinvocationPolicy, Shadow, SideEffects
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes
from gateway.serving import replay
from gateway.serving import shadow_comparison as shadowing
from gateway.serving.driver import NotInCluster
from gateway.serving.patch_lines import PatchLines
from gateway.serving.replay import FAILED, Replays
from gateway.serving.shadow_comparison import DIFFERENT, SAME, ShadowComparison
from gateway.telemetry.table import SHADOW_COMPARISONS
from tests.integration.process import WAIT_SECONDS
from tests.world import decide, label, patch, policy, request

DIFFERS = "a shadow's verdict differs from that of its policy"
FAILS = "a shadow failed where its policy did not; logged again when it fails for another reason"
AWAY = Failure(reason=Reason.WORKER_UNAVAILABLE, message="away")


def shadowed(name, **fields):
    """A policy whose shadow is policy NAME-next of worker "next"."""
    return policy(name, shadow=Shadow(worker="next", policy=f"{name}-next"), **fields)


class Configuration:
    """A configuration with these policies; their shadows answer as ``behaviours`` say, by the name of their policy.

    ``called`` are those names with the documents, in order; ``held`` counts who holds it. Also counts, as Events.
    """

    def __init__(self, policies, behaviours, availability=None):
        self.policies = policies
        self.behaviours = behaviours
        self.availability = availability or Described(version="2")
        self.namespaces = {}
        self.facts = NotInCluster()
        self.called = []
        self.cancelled = 0
        self.held = 0
        self.results = []

    @property
    def shadows(self):
        return self

    def shadow_plan(self, about):
        if not any(each is about for each in self.policies):
            return None
        shadow = shadow_of(about)
        return make_plan(about.phase, (shadow,), {shadow.qualified_name: self.availability}, registered=True)

    def begin(self):
        self.held += 1

    def end(self):
        self.held -= 1

    def count(self, metric, phase, name, result):
        assert metric is SHADOW_COMPARISONS
        self.results.append((name.removeprefix("test/").split(".")[0], result))

    def known(self, policy_call):
        return None

    def call(self, policy_call, reply):
        document = json.loads(policy_call.document.content)
        self.called.append((policy_call.policy.policy, document))
        behaviour = self.behaviours[policy_call.policy.policy]
        answer = behaviour(document) if callable(behaviour) else behaviour
        if answer is None:
            return self._cancel
        return asyncio.get_running_loop().call_soon(reply.answered, policy_call, answer).cancel

    def disagreed(self, call, version):
        pass

    def _cancel(self):
        self.cancelled += 1


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No pause before a comparison."""
    monkeypatch.setattr(replay, "AFTER_SECONDS", 0.0)


async def compare(decision, loaded, *, patch_limits=DEFAULT_LIMITS, **fields):
    """Compare a decision, each time with a new ShadowComparison."""
    replays = Replays(lambda: loaded, patch_limits=patch_limits)
    ShadowComparison(replays, loaded, lines=PatchLines(b"k" * 32), **fields).decided(decision)
    async with asyncio.timeout(WAIT_SECONDS):
        await replays.idle()
    assert loaded.held == 0


async def compared(policies, behaviours, shadows, *, on=None, in_force=None, availability=None, **fields):
    """Decide a review, and compare."""
    decision, _ = decide(policies, behaviours, on=on)
    loaded = Configuration(policies if in_force is None else in_force, shadows, availability)
    await compare(decision, loaded, **fields)
    return loaded


def logged(logs, event):
    return [entry for entry in logs if entry["event"] == event]


RESHAPED = Allow(
    change=label("a").change, warnings=("this one warns",), audit_annotations={"key": "value"}, version="2"
)
REPLACED = patch({"op": "add", "path": "/metadata/labels", "value": {"a": "1"}})


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(
    ("said", "shadow", "result"),
    [
        (Allow(), Allow(), SAME),
        (Allow(), Allow(warnings=("w",), audit_annotations={"k": "v"}), SAME),
        (Deny(message="no"), Deny(message="never", reason="Invalid", warnings=("w",)), SAME),
        (Deny(code=403), Deny(code=422), DIFFERENT),
        (Deny(code=0), Deny(code=200), SAME),
        (Allow(), Deny(), DIFFERENT),
        (Deny(), Allow(), DIFFERENT),
        (Allow(), AWAY, FAILED),
    ],
)
async def test_what_becomes_of_the_request_is_compared(phase, said, shadow, result):
    """Allowed or denied, and with which code; whatever people read is no difference."""
    loaded = await compared([shadowed("a", phase=phase)], {"a": said}, {"a-next": shadow})
    assert loaded.results == [("a", result)]
    assert [name for name, _ in loaded.called] == ["a-next"]


@pytest.mark.parametrize(
    ("said", "shadow", "result"),
    [
        (label("a"), RESHAPED, SAME),
        (label("a"), REPLACED, SAME),
        (label("a"), label("a", "2"), DIFFERENT),
        (label("a"), label("b"), DIFFERENT),
        (label("a"), Allow(), DIFFERENT),
        (Allow(), label("a"), DIFFERENT),
        (label("a"), patch({"op": "add", "path": "/metadata/labels/a", "value": 1}), FAILED),
        (Allow(), patch({"op": "remove", "path": "/metadata/labels/none"}), FAILED),
        (Allow(), patch({"op": "replace", "path": "/metadata/name", "value": "other"}), FAILED),
    ],
)
async def test_the_objects_that_are_left_are_compared(said, shadow, result):
    """Not how a change is said; one that is refused is a failure, as it is for a policy."""
    loaded = await compared([shadowed("a")], {"a": said}, {"a-next": shadow})
    assert loaded.results == [("a", result)]


async def test_true_is_not_one():
    """Equal is what JSON calls equal."""
    loaded = await compared(
        [shadowed("a")],
        {"a": patch({"op": "add", "path": "/spec", "value": {"a": True, "b": 1}})},
        {"a-next": patch({"op": "add", "path": "/spec", "value": {"a": 1, "b": 1.0}})},
    )
    assert loaded.results == [("a", DIFFERENT)]


async def test_a_shadow_sees_what_its_policy_saw():
    """The object as those before the policy left it; not as it came, not as it left, not as a shadow wants."""
    policies = [shadowed("a"), shadowed("b", index=1), shadowed("c", index=2)]
    says = {name: label(name) for name in "abc"}
    loaded = await compared(policies, says, {f"{name}-next": label("other") for name in "abc"})
    seen = {name: document["object"]["metadata"]["labels"] for name, document in loaded.called}
    assert seen == {"a-next": {}, "b-next": {"a": "1"}, "c-next": {"a": "1", "b": "1"}}
    assert sorted(loaded.results) == [("a", DIFFERENT), ("b", DIFFERENT), ("c", DIFFERENT)]


async def test_the_document_is_the_very_same():
    """Without changes, the shadow gets what its policy got: the API server's own bytes."""
    chosen = shadowed("a")
    decision, world = decide([chosen], {"a": Allow()})
    contents = []

    class Recording(Configuration):
        def call(self, policy_call, reply):
            contents.append(policy_call.document.content)
            return super().call(policy_call, reply)

    loaded = Recording([chosen], {"a-next": Allow()})
    await compare(decision, loaded)
    assert contents == [world.calls[0][1].document.content]


async def test_a_shadow_sees_as_much_as_it_claims():
    """What its worker described narrows the document, and what it may change."""
    narrow = Described(
        version="2",
        inputs=Inputs(places=PointerSet([("object", "metadata", "labels")])),
        writes=Writes(granted=PointerSet([("metadata", "labels", "b")])),
    )
    loaded = await compared([shadowed("a")], {"a": label("a")}, {"a-next": label("a")}, availability=narrow)
    ((_, document),) = loaded.called
    assert document["object"] == {"metadata": {"labels": {}}}
    assert loaded.results == [("a", FAILED)]


async def test_each_turn_of_a_policy_is_compared():
    """One that was reinvoked is compared twice, on the object of each turn."""

    def follow(document):
        return label("a", document["object"]["metadata"]["labels"].get("b", "0"))

    policies = [shadowed("a", reinvocation_policy=ReinvocationPolicy.IF_NEEDED), policy("b", index=1)]
    loaded = await compared(policies, {"a": follow, "b": label("b")}, {"a-next": follow})
    assert loaded.results == [("a", SAME)] * 2
    labels = [document["object"]["metadata"]["labels"] for _, document in loaded.called]
    assert labels == [{}, {"a": "0", "b": "1"}]


async def test_what_is_not_enforced_is_compared():
    """The change that a policy under audit would make is a change."""
    loaded = await compared([shadowed("a", mode=Mode.AUDIT)], {"a": label("a")}, {"a-next": label("a")})
    assert loaded.results == [("a", SAME)]


async def test_a_request_without_an_object_is_compared():
    """A DELETE has none."""
    on = request(operation="DELETE", object=None, oldObject={"metadata": {"name": "p"}})
    loaded = await compared([shadowed("a")], {"a": Allow()}, {"a-next": Allow()}, on=on)
    assert loaded.results == [("a", SAME)]
    assert loaded.called[0][1]["object"] is None


@pytest.mark.parametrize(
    "policies",
    [
        [policy("a")],
        [shadowed("a", rules=())],
        [policy("b"), shadowed("a", index=1)],
    ],
    ids=["no shadow", "not matched", "behind a denial"],
)
async def test_without_a_verdict_no_shadow_is_called(policies):
    """Who has no shadow, or has not judged, is not compared."""
    loaded = await compared(policies, {"a": Allow(), "b": Deny()}, {})
    assert (loaded.called, loaded.results) == ([], [])


@pytest.mark.parametrize("answer", [AWAY, patch({"op": "remove", "path": "/nothing"})], ids=["away", "invalid patch"])
async def test_a_failure_is_compared_with_nothing(answer):
    """An error is not a verdict: the policy's verdict is unknown."""
    loaded = await compared([shadowed("a")], {"a": answer}, {"a-next": Allow()})
    assert (loaded.called, loaded.results) == ([], [])


@pytest.mark.parametrize(
    ("effects", "dry_run", "called"),
    [
        (SideEffects.NONE, False, True),
        (SideEffects.NONE, True, True),
        (SideEffects.NONE_ON_DRY_RUN, True, True),
        (SideEffects.NONE_ON_DRY_RUN, False, False),
    ],
)
async def test_side_effects_are_had_once(effects, dry_run, called):
    """A policy that changes something in the world with this request has no shadow for it."""
    policies = [shadowed("a", side_effects=effects)]
    loaded = await compared(policies, {"a": Allow()}, {"a-next": Allow()}, on=request(dryRun=dry_run))
    assert bool(loaded.called) is called
    assert bool(loaded.results) is called


async def test_a_difference_is_reported_with_both_verdicts(logs):
    """Who judges otherwise, what each said, what each changed, and for which request."""
    says = Allow(change=label("a").change, warnings=("old words",), version="1.4")
    shadow = Deny(code=422, message="not any more", warnings=("new words",), version="2.0")
    await compared([shadowed("a")], {"a": says}, {"a-next": shadow})
    (entry,) = logged(logs, DIFFERS)
    assert entry["verdict"] == ["allows", 'add /metadata/labels/a = "1"', "warns: old words"]
    assert entry["shadow_verdict"] == ["denies (422): not any more", "warns: new words"]
    assert (entry["policy"], entry["phase"], entry["source"]) == ("test/a.test.example.com", "mutating", "called")
    assert (entry["worker"], entry["version"]) == ("worker-a", "1.4")
    assert (entry["shadow_worker"], entry["shadow_policy"], entry["shadow_version"]) == ("next", "a-next", "2.0")
    assert (entry["uid"], entry["resource"], entry["namespace"], entry["log_level"]) == ("u1", "pods", "t", "warning")


async def test_what_is_the_same_is_not_reported(logs):
    """The log has differences and failures."""
    await compared([shadowed("a")], {"a": label("a")}, {"a-next": label("a")})
    assert logs == []


async def test_values_of_a_secret_are_hashed(logs):
    """The log has the places, and whether values are equal; never a value."""
    on = request(
        {"metadata": {"name": "s", "labels": {}}, "data": {}}, kind={"group": "", "version": "v1", "kind": "Secret"}
    )

    def sealed(value):
        return patch({"op": "add", "path": "/data/password", "value": value})

    await compared([shadowed("a")], {"a": sealed("hunter2")}, {"a-next": sealed("hunter3")}, on=on)
    (entry,) = logged(logs, DIFFERS)
    assert entry["verdict"][1].startswith("add /data/password = (a value with the digest ")
    assert entry["verdict"][1] != entry["shadow_verdict"][1]
    assert "hunter" not in str(logs)


async def test_a_line_is_bounded(logs):
    """Whatever workers write."""
    many = [{"op": "add", "path": f"/metadata/labels/l{n}", "value": "x" * 10_000} for n in range(30)]
    shadow = Allow(change=patch(*many).change, warnings=("w" * 10_000,) * 100)
    await compared([shadowed("a")], {"a": Deny(message="m" * 10_000)}, {"a-next": shadow})
    (entry,) = logged(logs, DIFFERS)
    assert len(entry["shadow_verdict"]) <= 42
    assert max(map(len, entry["verdict"] + entry["shadow_verdict"])) <= 501


async def test_a_failure_is_reported_once_for_each_reason(logs):
    """A shadow that is away for an hour is one line; when it is back and away again, that is news."""
    chosen = shadowed("a")
    decision, _ = decide([chosen], {"a": Allow()})
    loaded = Configuration([chosen], {})
    replays = Replays(lambda: loaded)
    shadow = ShadowComparison(replays, loaded, lines=PatchLines(b"k" * 32))
    late = Failure(reason=Reason.WORKER_TIMEOUT, message="late")
    for answer in (AWAY, AWAY, late, AWAY, Allow(), AWAY):
        loaded.behaviours["a-next"] = answer
        shadow.decided(decision)
        await replays.idle()
    reported = [(entry["reason"], entry["why"]) for entry in logged(logs, FAILS)]
    away = ("WORKER_UNAVAILABLE", "away")
    assert [reason for reason, _ in reported] == [away[0], "WORKER_TIMEOUT", away[0], away[0]]
    assert reported[0] == away
    assert [result for _, result in loaded.results].count(FAILED) == 5


async def test_what_is_known_of_failures_is_bounded(logs, monkeypatch):
    """With more policies than are remembered, a failure is reported again, and nothing grows."""
    monkeypatch.setattr(shadowing, "FAILING_KEPT", 2)
    policies = [shadowed(name, phase=Phase.VALIDATING, index=index) for index, name in enumerate("abc")]
    says = {name: Allow() for name in "abc"}
    await compared(policies, says, {f"{name}-next": AWAY for name in "abc"})
    assert len(logged(logs, FAILS)) == 3


async def test_a_shadow_that_cannot_be_called_fails(logs):
    """One that is not described, or whose settings are refused, is a failure of the shadow alone."""
    availability = Unavailable(why=UnavailableReason.SETTINGS, message="worker 'next' refuses the settings")
    loaded = await compared([shadowed("a")], {"a": Allow()}, {}, availability=availability)
    assert (loaded.called, loaded.results) == ([], [("a", FAILED)])
    assert logged(logs, FAILS)[0]["why"] == availability.message


async def test_a_shadow_that_hangs_ends_with_its_policys_timeout():
    """A comparison has an end, and then the call is broken off."""
    loaded = await compared([shadowed("a", timeout=0.01)], {"a": Allow()}, {"a-next": None})
    assert loaded.results == [("a", FAILED)]
    assert loaded.cancelled == 1


async def test_a_policy_that_is_not_configured_any_more_is_not_compared():
    """The configuration has changed since: the same name may be another policy."""
    loaded = await compared([shadowed("a")], {"a": Allow()}, {"a-next": Allow()}, in_force=[shadowed("a")])
    assert (loaded.called, loaded.results) == ([], [])


@pytest.mark.parametrize(
    ("share", "drawn", "called"), [(0.0, 0.0, False), (0.5, 0.5, False), (0.5, 0.49, True), (1.0, 0.999, True)]
)
async def test_a_share_is_compared(share, drawn, called):
    """0 is none, 1 is all."""
    loaded = await compared([shadowed("a")], {"a": Allow()}, {"a-next": Allow()}, share=share, draw=lambda: drawn)
    assert bool(loaded.results) is called


async def test_changes_that_pass_the_limits_together_are_a_failure(logs):
    """The idempotency check's rule: an unknown result is no failure."""
    policies = [policy("a"), shadowed("b", index=1)]
    two = patch(*({"op": "add", "path": f"/metadata/labels/{name}", "value": "1"} for name in "xy"))
    limits = PatchLimits(operations=1)
    loaded = await compared(policies, {"a": two, "b": Allow()}, {"b-next": Allow()}, patch_limits=limits)
    assert (loaded.results, logs) == ([("b", FAILED)], [])
