"""Who changed what: every field of the final patch, whose it is, and what may be shown of it."""

import json

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from gateway.engine.answer_source import Source
from gateway.engine.engine import Engine
from gateway.engine.field_changes import FieldChange, digest
from gateway.engine.plan import Described, make_plan
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny
from gateway.policies.model import Phase
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from tests.engine.reference import cases, run
from tests.world import PODS, World, decide, label, patch, policy, request

A, B = "a.test.example.com", "b.test.example.com"
PAIR = [policy("a"), policy("b", index=1)]
SECRET = {
    "kind": {"group": "", "version": "v1", "kind": "Secret"},
    "resource": {"group": "", "version": "v1", "resource": "secrets"},
}


def test_a_blame_names_the_policy_its_worker_and_its_version():
    """And operation, values, order, source."""
    chain = [policy("a")]
    engine = Engine(request(), make_plan(Phase.MUTATING, chain, {"test/" + A: Described(version="7")}), ends=200.0)
    decision = World(behaviours={"a": label("one")}).decide(engine)
    assert decision.field_changes == (
        FieldChange(
            path="/metadata/labels/one",
            op="add",
            before=UNSET,
            after="1",
            policy=A,
            qualified_name=f"test/{A}",
            worker="worker-a",
            version="7",
            round=0,
            order=0,
            source=Source.CALLED,
            earlier=(),
            hidden=False,
        ),
    )


def test_the_version_is_the_answers_own_if_it_says_one():
    """The worker may have been replaced since it described itself."""
    decision, _ = decide([policy("a")], {"a": Allow(change=label("one").change, version="8")})
    assert (decision.field_changes[0].version, decision.calls[0].version) == ("8", "8")


def test_the_last_writer_is_blamed_and_the_earlier_ones_are_named():
    """By the places of their turns among the calls."""
    decision, _ = decide(PAIR, {"a": label("one"), "b": label("one", "2")})
    (entry,) = decision.field_changes
    assert (entry.policy, entry.after, entry.order, entry.earlier) == (B, "2", 1, (0,))


def test_blame_follows_elements_and_not_indexes():
    """A container inserted in front shifts the path of what was changed before."""
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    image = patch({"op": "replace", "path": "/spec/containers/0/image", "value": "y"})
    front = patch({"op": "add", "path": "/spec/containers/0", "value": {"name": "front", "image": "z"}})
    decision, _ = decide(PAIR, {"a": image, "b": front}, on=request(pod))
    assert {(entry.path, entry.policy) for entry in decision.field_changes} == {
        ("/spec/containers/0", B),
        ("/spec/containers/1/image", A),
    }


@pytest.mark.parametrize("answers", [{"a": label("one"), "b": Deny()}, {"a": Allow(), "b": Allow()}])
def test_an_undone_change_has_no_author(answers):
    """A refused review changes nothing."""
    decision, _ = decide(PAIR, answers)
    assert decision.field_changes == ()
    assert not any(key.endswith("_changed") for key in decision.response.audit_annotations)


def test_each_policy_that_changed_something_has_an_annotation_that_says_what():
    """Operations and places as they are in the end, no values."""
    decision, _ = decide(PAIR, {"a": label("one"), "b": label("two", "secret")})
    assert decision.response.audit_annotations == {
        f"{A}_changed": "add /metadata/labels/one",
        f"{B}_changed": "add /metadata/labels/two",
    }


def test_the_annotation_is_bounded():
    """It says how many more there are."""
    operations = [{"op": "add", "path": f"/metadata/labels/{'x' * 60}{number}", "value": "1"} for number in range(40)]
    decision, _ = decide([policy("a")], {"a": patch(*operations)})
    reported = decision.response.audit_annotations[f"{A}_changed"]
    assert len(reported) <= 1_015
    assert reported.endswith(" more")


def test_no_annotation_of_a_worker_hides_what_it_changed():
    """Whichever key it chooses."""
    lie = Allow(change=label("one").change, audit_annotations={"changed": "nothing"})
    decision, _ = decide([policy("a")], {"a": lie})
    assert decision.response.audit_annotations == {f"{A}_changed": "add /metadata/labels/one"}


def test_values_of_a_secret_are_hidden():
    """Whatever the inputs are."""
    secret = request({"metadata": {"name": "s", "labels": {}}}, **SECRET)
    secrets = replace(PODS, resources=("secrets",))
    decision, _ = decide([policy("a", rules=(secrets,))], {"a": label("one")}, on=secret)
    assert decision.field_changes[0].hidden


@pytest.mark.parametrize(("key", "hidden"), [("one", False), ("two", True)])
def test_values_that_the_policy_was_not_shown_are_hidden(key, hidden):
    """It writes beside what it sees."""
    inputs = Inputs(places=PointerSet([("object", "metadata", "labels", "one")]))
    decision, _ = decide([policy("a", inputs=inputs)], {"a": label(key)})
    assert decision.field_changes[0].hidden is hidden


def test_a_digest_is_of_the_value_and_of_the_key():
    """Equal values have equal digests, whatever the order of their members; another key gives another digest."""
    assert digest({"a": 1, "b": 2}, b"k") == digest({"b": 2, "a": 1}, b"k")
    assert digest({"a": 1}, b"k") != digest({"a": 2}, b"k")
    assert digest({"a": 1}, b"k") != digest({"a": 1}, b"l")
    assert len(digest("x", b"k")) == 16


def test_a_change_in_whatever_form_is_blamed_by_our_own_difference():
    """A whole object says nothing of operations."""
    whole = Allow(
        change=Change(
            kind=ChangeKind.OBJECT, content=json.dumps({"metadata": {"name": "p", "labels": {"x": "1"}}}).encode()
        )
    )
    decision, _ = decide([policy("a")], {"a": whole})
    assert [(entry.op, entry.path) for entry in decision.field_changes] == [("add", "/metadata/labels/x")]


@pytest.mark.property
def test_changed_by_is_the_patch_and_each_author_in_it_changed_something():
    """Each operation of the patch has its entry, and each entry a turn that changed something."""
    for case in cases(3):
        decision, _ = run(case, prefetch=True)
        assert {(each.op, each.path) for each in decision.patch} <= {
            (each.op, each.path) for each in decision.field_changes
        }
        assert bool(decision.patch) is bool(decision.field_changes), case
        for entry in decision.field_changes:
            turns = [*entry.earlier, entry.order]
            assert all(decision.calls[turn].changes for turn in turns), case
            assert decision.calls[entry.order].label == entry.policy
