"""``review`` reports each changed field, its last writer, those before, and no value of a Secret."""

import json
from types import SimpleNamespace

import click
import pytest
from msgspec.structs import replace

from gateway.cli.decision_document import decision_document
from gateway.cli.review_text import reported
from gateway.engine.answer_source import Source
from gateway.engine.verdicts import Allow, Failure
from gateway.policies.model import OnConflict, Phase
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.serving.dispatch_simulator import SimulatedCall, Simulation
from tests.world import decide, label, patch, policy, request

ENTRY = SimpleNamespace(name="chain.test", path="/mutate/chain.test", isolated=False)
SECRET = {"group": "", "version": "v1", "kind": "Secret"}


def walked(policies, behaviours, *, on=None, change=lambda decision: decision):
    """The walk of a request through one entry with these policies."""
    decision = change(decide(policies, behaviours, on=on)[0])
    visit = SimulatedCall(entry=ENTRY, round=0, decision=decision)
    allowed = decision.response.allowed
    return Simulation(
        phase=Phase.MUTATING,
        request=decision.request,
        object=decision.object if allowed else decision.request.object,
        visits=(visit,),
        refused_by=None if allowed else ENTRY,
        status=decision.response.status,
    )


def entry_of(*arguments, **options):
    """The entry's part of the JSON document."""
    (found,) = json.loads(decision_document("x.json", walked(*arguments, **options)))["entries"]
    return found


def text_of(*arguments, **options):
    """The text, without colours."""
    return click.unstyle("\n".join(reported("x.json", walked(*arguments, **options), first=True)))


def replacing(key, value):
    """An allow that replaces a label."""
    return patch({"op": "replace", "path": f"/metadata/labels/{key}", "value": value})


def test_each_changed_field_has_its_writer():
    """Path, operation, before and after, and whose policy in which version it is."""
    on = request({"metadata": {"name": "p", "labels": {"a": "0", "c": "0"}}})
    behaviours = {
        "a": replacing("a", "1"),
        "b": patch(
            {"op": "add", "path": "/data", "value": {"x": None}},
            {"op": "remove", "path": "/metadata/labels/c"},
        ),
    }
    blame = {
        each["path"]: each for each in entry_of([policy("a"), policy("b", index=1)], behaviours, on=on)["changedBy"]
    }
    assert blame["/metadata/labels/a"] == {
        "path": "/metadata/labels/a",
        "op": "replace",
        "before": "0",
        "after": "1",
        "hidden": False,
        "policy": "test/a.test.example.com",
        "worker": "worker-a",
        "version": "1",
        "round": 0,
        "order": 0,
        "source": "called",
        "earlier": [],
    }
    added, removed = blame["/data"], blame["/metadata/labels/c"]
    assert ("before" in added, added["after"], added["order"]) == (False, {"x": None}, 1)
    assert ("after" in removed, removed["before"], removed["op"]) == (False, "0", "remove")


def test_a_field_with_two_writers_names_both():
    """The last one, and the places of those before; in the text as a sentence."""
    chain = [policy("a"), policy("b", index=1)], {"a": label("x", "1"), "b": replacing("x", "2")}
    (blame,) = entry_of(*chain)["changedBy"]
    assert (blame["policy"], blame["order"], blame["earlier"]) == ("test/b.test.example.com", 1, [0])
    assert "/metadata/labels/x was written by a.test.example.com then b.test.example.com" in text_of(*chain)


@pytest.mark.parametrize(
    ("on", "fields"),
    [
        (request({"metadata": {"name": "s", "labels": {"x": "hunter2"}}}, kind=SECRET), {}),
        (
            request({"metadata": {"name": "s", "labels": {"x": "hunter2"}}}),
            {"inputs": Inputs(places=PointerSet([("object", "metadata", "name")]))},
        ),
    ],
    ids=["a Secret's", "not shown to the policy"],
)
def test_hidden_values_are_digests(on, fields):
    """Equal ones are equal, other ones are others, and the value stands nowhere in the blame."""
    merge = {"a": patch({"op": "add", "path": "/metadata/labels", "value": {"x": "hunter3", "y": "hunter3"}})}
    if fields:
        merge = {"a": patch({"op": "add", "path": "/data", "value": "hunter3"})}
    entry = entry_of([policy("a", **fields)], merge, on=on)
    assert entry["changedBy"]
    assert "hunter" not in json.dumps(entry["changedBy"])
    assert {each["hidden"] for each in entry["changedBy"]} == {True}
    digests = [each["afterDigest"] for each in entry["changedBy"]]
    assert all(len(digest) == 16 for digest in digests)
    assert len(set(digests)) == 1
    assert all("before" not in each and "after" not in each for each in entry["changedBy"])


def test_the_text_has_no_value_of_a_secret():
    """Reports are pasted into tickets."""
    on = request({"metadata": {"name": "s", "labels": {}}}, kind=SECRET)
    text = text_of([policy("a")], {"a": label("x", "hunter2")}, on=on)
    assert "hunter2" not in text
    assert "add     /metadata/labels/x = " in text


def test_the_text_has_no_container_that_the_policy_was_not_shown():
    """An array that its policy was not shown is reported with hidden elements."""
    on = request({"metadata": {"name": "p"}, "list": ["hunter2"] * 9_000})
    fill = {"a": patch(*[{"op": "add", "path": "/list/-", "value": "x"} for _ in range(6_000)])}
    narrow = Inputs(places=PointerSet([("object", "metadata")]))
    text = text_of([policy("a", inputs=narrow)], fill, on=on)
    assert "replace /list = " in text
    assert "hunter2" not in text


def test_many_conflicts_are_counted():
    """The first few are listed, with the number of the others."""
    labels = {f"l{number}": "1" for number in range(30)}
    fill = patch({"op": "add", "path": "/metadata/labels", "value": labels})
    wipe = patch({"op": "remove", "path": "/metadata/labels"})
    chain = [policy("a", on_conflict=OnConflict.WARN), policy("b", index=1)], {"a": fill, "b": wipe}
    assert "and 10 more conflicts" in text_of(*chain, on=request({"metadata": {"name": "p"}}))


def test_the_same_review_gives_the_same_bytes():
    """Digests included."""
    on = request({"metadata": {"name": "s", "labels": {}}}, kind=SECRET)
    documents = {decision_document("x", walked([policy("a")], {"a": label("x")}, on=on)) for _ in range(2)}
    assert len(documents) == 1


@pytest.mark.parametrize("rule", OnConflict)
def test_a_conflict_is_named(rule):
    """Where, with which policy, by which rule; under deny the change is not applied."""
    policies = [policy("a"), policy("b", index=1, on_conflict=rule)]
    chain = policies, {"a": label("x", "1"), "b": replacing("x", "2")}
    first, second = entry_of(*chain)["policies"][:2]
    assert first["conflicts"] == []
    assert second["conflicts"] == [
        {"path": "/metadata/labels/x", "with": ["a.test.example.com"], "onConflict": rule.value}
    ]
    assert second["reason"] == ("PATCH_CONFLICT" if rule is OnConflict.DENY else "")
    applied = "not applied" if rule is OnConflict.DENY else "applied"
    assert f"conflicts with a.test.example.com at /metadata/labels/x (onConflict {rule.value}: {applied})" in text_of(
        *chain
    )


def test_nothing_is_to_blame_behind_a_refusal():
    """What is refused changes nothing."""
    away = Failure(reason=Reason.WORKER_UNAVAILABLE, message="away")
    entry = entry_of([policy("a"), policy("b", index=1)], {"a": label("x"), "b": away})
    assert entry["changedBy"] == []


def test_a_stale_answer_says_how_old_it_is():
    """And in whose place it stands."""

    def aged(decision):
        away = Failure(reason=Reason.WORKER_TIMEOUT, message="late")
        calls = tuple(replace(call, source=Source.STALE, age=60.5, instead_of=away) for call in decision.calls)
        return replace(decision, calls=calls)

    (call,) = entry_of([policy("a")], {"a": Allow()}, change=aged)["policies"]
    assert (call["source"], call["age"]) == ("stale", 60.5)
    assert call["insteadOf"] == {"reason": "WORKER_TIMEOUT", "message": "late"}
    (call,) = entry_of([policy("a")], {"a": Allow()})["policies"]
    assert (call["source"], call["age"], call["insteadOf"]) == ("called", 0.0, None)
