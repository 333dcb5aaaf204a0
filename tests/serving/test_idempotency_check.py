"""The idempotency check: a policy that changes its own result again is named, and no review waits for it."""

import asyncio
import json

import pytest

from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Phase, ReinvocationPolicy, SideEffects
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import ANY, PointerSet
from gateway.serving import replay
from gateway.serving.driver import NotInCluster
from gateway.serving.idempotency_check import STABLE, UNSTABLE, IdempotencyCheck
from gateway.serving.patch_lines import PatchLines
from gateway.serving.replay import FAILED, Replays
from gateway.telemetry.table import IDEMPOTENCY_CHECKED_POLICIES, IDEMPOTENCY_CHECKS
from tests.integration.process import WAIT_SECONDS
from tests.world import decide, label, patch, plan, policy, request

NAMED = "a policy changes its own result when called again: it is not idempotent"
NAMED_AS_A_SET = "policies that are idempotent one by one change their common result: they are not idempotent as a set"


class Workers:
    """Answers in the next turn of the loop, as ``behaviours`` say. ``called`` are short names, in order."""

    def __init__(self, behaviours):
        self.behaviours = behaviours
        self.called = []

    def known(self, policy_call):
        return None

    def call(self, policy_call, reply):
        self.called.append(policy_call.policy.policy)
        behaviour = self.behaviours[policy_call.policy.policy]
        answer = behaviour(json.loads(policy_call.document.content)) if callable(behaviour) else behaviour
        if answer is None:
            return lambda: None
        return asyncio.get_running_loop().call_soon(reply.answered, policy_call, answer).cancel


class Configuration:
    """A configuration with these policies in force; ``held`` counts who holds it. Also counts, as Events."""

    def __init__(self, policies, behaviours):
        self.policies = policies
        self.workers = Workers(behaviours)
        self.namespaces = {}
        self.facts = NotInCluster()
        self.held = 0
        self.results = []
        self.named = []

    def plan(self, target):
        return plan(*self.policies)

    def begin(self):
        self.held += 1

    def end(self):
        self.held -= 1

    def count(self, metric, *labels):
        if metric is IDEMPOTENCY_CHECKS:
            self.results.append(*labels)
        else:
            assert metric is IDEMPOTENCY_CHECKED_POLICIES
            self.named.append((labels[1].removeprefix("test/").split(".")[0], labels[2]))


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No pause before an idempotency check."""
    monkeypatch.setattr(replay, "AFTER_SECONDS", 0.0)


def count(document):
    """Counts in a label how often it was called: never the same twice."""
    seen = document["object"]["metadata"]["labels"].get("count", "0")
    return patch({"op": "add", "path": "/metadata/labels/count", "value": str(int(seen) + 1)})


def follow(mine, other):
    """Adds a label that counts what the other one's says."""

    def behaviour(document):
        labels = document["object"]["metadata"]["labels"]
        if labels.get(mine, "") == labels.get(other, "") + "x":
            return Allow()
        return patch({"op": "add", "path": f"/metadata/labels/{mine}", "value": labels.get(other, "") + "x"})

    return behaviour


async def checked(policies, behaviours, *, again=None, on=None, share=1.0, draw=lambda: 0.0, in_force=None):
    """Decide a review, and patrol it. ``again``: what workers answer then, if it is something else."""
    decision, _ = decide(policies, behaviours, on=on)
    loaded = Configuration(policies if in_force is None else in_force, again or behaviours)
    replays = Replays(lambda: loaded)
    IdempotencyCheck(replays, loaded, share=share, lines=PatchLines(b"k" * 32), draw=draw).decided(decision)
    async with asyncio.timeout(WAIT_SECONDS):
        await replays.idle()
    assert loaded.held == 0
    return loaded


def logged(logs, event):
    return [entry for entry in logs if entry["event"] == event]


async def test_an_idempotent_policy_is_stable(logs):
    """One that leaves its own result alone is counted so, and named nowhere."""
    loaded = await checked([policy("a")], {"a": label("a")})
    assert (loaded.named, loaded.results, logs) == ([("a", STABLE)], [STABLE], [])
    assert loaded.workers.called == ["a", "a"]


async def test_a_policy_that_changes_its_own_result_is_named_with_both_patches(logs):
    """A metric and a log line: which policy, what it changed first, what it changed of that."""
    loaded = await checked([policy("a"), policy("b", index=1)], {"a": label("a"), "b": count})
    assert loaded.named == [("a", STABLE), ("b", UNSTABLE)]
    assert loaded.results == [STABLE], "the others are no set that changes anything"
    (entry,) = logged(logs, NAMED)
    assert entry["policy"] == "test/b.test.example.com"
    assert entry["first"] == ['add /metadata/labels/count = "1"']
    assert entry["again"] == ['replace /metadata/labels/count = "2"']
    assert (entry["uid"], entry["resource"], entry["namespace"], entry["log_level"]) == ("u1", "pods", "t", "warning")


async def test_each_policy_is_put_what_it_left_itself():
    """Not the final object: what a later policy did to it is not its doing."""
    policies = [policy("a"), policy("b", index=1)]
    undo = patch({"op": "remove", "path": "/metadata/labels/a"})
    loaded = await checked(policies, {"a": label("a"), "b": undo}, again={"a": label("a"), "b": Allow()})
    assert loaded.named == [("a", STABLE), ("b", STABLE)]


async def test_a_set_that_changes_its_own_result_is_named_as_a_set(logs):
    """Each alone is idempotent; one after the other they never end."""
    policies = [policy("a"), policy("b", index=1)]
    loaded = await checked(policies, {"a": follow("a", "b"), "b": follow("b", "a")})
    assert loaded.named == [("a", STABLE), ("b", STABLE)]
    assert loaded.results == [UNSTABLE]
    (entry,) = logged(logs, NAMED_AS_A_SET)
    assert entry["policies"] == ["test/a.test.example.com", "test/b.test.example.com"]
    assert entry["first"] == ['add /metadata/labels/a = "x"', 'add /metadata/labels/b = "xx"']
    assert entry["again"] == ['replace /metadata/labels/a = "xxx"', 'replace /metadata/labels/b = "xxxx"']


async def test_a_policy_that_denies_its_own_result_is_named(logs):
    """What was admitted must be admitted again."""
    loaded = await checked([policy("a")], {"a": label("a")}, again={"a": Deny(message="not twice")})
    assert loaded.named == [("a", UNSTABLE)]
    assert logged(logs, NAMED)[0]["again"] == ["denies: not twice"]


@pytest.mark.parametrize(
    ("effects", "dry_run", "called"),
    [
        (SideEffects.NONE, False, True),
        (SideEffects.NONE_ON_DRY_RUN, True, True),
        (SideEffects.NONE_ON_DRY_RUN, False, False),
    ],
)
async def test_who_has_side_effects_is_never_called_again(effects, dry_run, called):
    """Neither alone nor in the set; the others are."""
    policies = [policy("a", side_effects=effects), policy("b", index=1)]
    loaded = await checked(policies, {"a": label("a"), "b": label("b")}, on=request(dryRun=dry_run))
    assert ("a" in loaded.workers.called) is called
    assert "b" in loaded.workers.called


async def test_only_side_effects_are_no_patrol():
    """A review without a policy that may be called again is not checked, and not counted."""
    loaded = await checked([policy("a", side_effects=SideEffects.NONE_ON_DRY_RUN)], {"a": label("a")})
    assert (loaded.named, loaded.results) == ([], [])


@pytest.mark.parametrize(
    ("phase", "answer"),
    [(Phase.MUTATING, Allow()), (Phase.MUTATING, Deny()), (Phase.VALIDATING, Allow())],
    ids=["nothing changed", "denied", "validating"],
)
async def test_what_changed_nothing_is_not_patrolled(phase, answer):
    """Only allowed mutations are."""
    loaded = await checked([policy("a", phase=phase)], {"a": answer})
    assert (loaded.workers.called, loaded.results) == ([], [])


@pytest.mark.parametrize(
    ("share", "drawn", "called"), [(0.0, 0.0, False), (0.5, 0.5, False), (0.5, 0.49, True), (1.0, 0.999, True)]
)
async def test_a_share_is_patrolled(share, drawn, called):
    """0 is none, 1 is all."""
    loaded = await checked([policy("a")], {"a": label("a")}, share=share, draw=lambda: drawn)
    assert bool(loaded.results) is called


async def test_a_failure_says_nothing_about_a_policy(logs):
    """A worker that is away is no finding, and no line in the log."""
    away = Failure(reason=Reason.WORKER_UNAVAILABLE, message="away")
    loaded = await checked([policy("a")], {"a": label("a")}, again={"a": away})
    assert (loaded.named, loaded.results, logs) == ([("a", FAILED)], [FAILED], [])


async def test_a_worker_that_hangs_ends_with_its_own_timeout():
    """A patrol has an end."""
    loaded = await checked([policy("a", timeout=0.01)], {"a": label("a")}, again={"a": None})
    assert loaded.named == [("a", FAILED)]


async def test_a_policy_that_is_not_configured_any_more_is_not_called():
    """The configuration has changed since: the same name may be another policy."""
    loaded = await checked([policy("a")], {"a": label("a")}, in_force=[policy("a")])
    assert (loaded.workers.called, loaded.named, loaded.results) == ([], [], [STABLE])


async def test_reinvocation_leaves_one_question_for_each_policy():
    """A policy that changed something in both rounds is put what it left the second time."""
    policies = [policy("a", reinvocation_policy=ReinvocationPolicy.IF_NEEDED), policy("b", index=1)]
    loaded = await checked(policies, {"a": follow("a", "b"), "b": label("b")})
    assert sorted(loaded.named) == [("a", STABLE), ("b", STABLE)]
    assert loaded.results == [STABLE]


async def test_values_of_a_secret_are_hashed(logs):
    """The log has the places, and what is equal and what is not; never a value."""
    on = request(
        {"metadata": {"name": "s", "labels": {}}, "data": {}}, kind={"group": "", "version": "v1", "kind": "Secret"}
    )

    def seal(document):
        return patch(
            {"op": "add", "path": "/data/password", "value": document["object"]["data"].get("password", "") + "hunter2"}
        )

    await checked([policy("a")], {"a": seal}, on=on)
    (entry,) = logged(logs, NAMED)
    assert entry["first"][0].startswith("add /data/password = (a value with the digest ")
    assert entry["first"] != entry["again"]
    assert "hunter2" not in str(logs)


async def test_what_a_policy_was_not_shown_is_hashed(logs):
    """The difference takes a shifted element for a new one, with all that was hidden in it; the log has a digest."""
    on = request({"metadata": {"name": "p"}, "list": [{"a": "1"}, {"a": "2", "b": "hunter2"}]})
    shown = Inputs(places=PointerSet([("object", "list", ANY, "a")]))

    def shift(document):
        return patch(
            {"op": "replace", "path": "/list/0/a", "value": "2"},
            {"op": "add", "path": "/list/-", "value": {"a": "1", "c": "x"}},
        )

    loaded = await checked([policy("a", inputs=shown)], {"a": shift}, on=on)
    assert loaded.named == [("a", UNSTABLE)]
    (entry,) = logged(logs, NAMED)
    assert "hunter2" not in str(logs)
    assert any("(a value with the digest " in line for line in entry["first"])


async def test_a_set_names_each_policy_once(logs):
    """However often it was reinvoked."""
    policies = [
        policy(name, index=index, reinvocation_policy=ReinvocationPolicy.IF_NEEDED) for index, name in enumerate("ab")
    ]
    await checked(policies, {"a": follow("a", "b"), "b": follow("b", "a")})
    (entry,) = logged(logs, NAMED_AS_A_SET)
    assert entry["policies"] == ["test/a.test.example.com", "test/b.test.example.com"]


async def test_a_long_patch_is_cut(logs):
    """A line is bounded, whatever a worker writes."""
    loaded = await checked(
        [policy("a")],
        {
            "a": lambda document: patch(
                *({"op": "add", "path": f"/metadata/labels/l{n}", "value": "x" * 10_000} for n in range(30))
            )
        },
        again={"a": count},
    )
    assert loaded.named == [("a", UNSTABLE)]
    (entry,) = logged(logs, NAMED)
    assert len(entry["first"]) == 21
    assert entry["first"][-1] == "and 10 more"
    assert max(map(len, entry["first"])) <= 501
