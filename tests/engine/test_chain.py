"""The mutating chain: one after another, each sees what the ones before it left."""

import json

import jsonpatch
import pytest
from msgspec.structs import replace

from gateway.engine.answer_source import Source
from gateway.engine.decision import Outcome
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny, Failure
from gateway.policies.model import FailurePolicy, ReinvocationPolicy, Requirement, Rule, Selector
from gateway.reasons import Reason
from tests.world import decide, label, patch, policy, request

IF_NEEDED = {"reinvocation_policy": ReinvocationPolicy.IF_NEEDED}
IGNORE = {"failure_policy": FailurePolicy.IGNORE}
A, B, C = policy("a"), policy("b", index=1), policy("c", index=2)
BROKEN = Failure(reason=Reason.WORKER_FAILURE, message="it broke")


def labels(document):
    return document["object"]["metadata"].get("labels")


def test_each_policy_sees_the_object_as_the_one_before_left_it():
    """The second policy's document has the first one's label in it."""
    seen = []
    decision, _ = decide([A, B], {"a": label("one"), "b": lambda document: seen.append(labels(document)) or Allow()})
    assert seen == [{"one": "1"}]
    assert decision.outcome is Outcome.ALLOWED


def test_the_patch_is_the_difference_of_all_changes():
    """Applying it to what came gives what the gateway predicted."""
    decision, _ = decide([A, B], {"a": label("one"), "b": label("two")})
    patched = jsonpatch.apply_patch(request().object, json.loads(decision.response.patch))
    assert patched == decision.object == {"metadata": {"name": "p", "labels": {"one": "1", "two": "1"}}}


def test_a_change_undone_by_a_later_policy_is_no_patch():
    """Nothing changed in the end, so nothing is said."""
    undo = patch({"op": "remove", "path": "/metadata/labels/one"})
    decision, _ = decide([A, B], {"a": label("one"), "b": undo})
    assert decision.response.patch is None
    assert [len(call.changes) for call in decision.calls] == [1, 1]


@pytest.mark.parametrize(
    "change",
    [
        Change(kind=ChangeKind.JSON_PATCH, content=b"[]"),
        Change(kind=ChangeKind.JSON_PATCH, content=b'[{"op":"replace","path":"/metadata/name","value":"p"}]'),
        Change(kind=ChangeKind.JSON_PATCH, content=b'[{"op":"test","path":"/metadata/name","value":"p"}]'),
        Change(kind=ChangeKind.MERGE_PATCH, content=b"{}"),
        Change(kind=ChangeKind.OBJECT, content=b'{"metadata":{"labels":{},"name":"p"}}'),
    ],
)
def test_a_change_that_changes_nothing_is_none(change):
    """kube-apiserver would count a no-op patch as a change; the gateway sends none, and reinvokes no policy."""
    first = policy("a", **IF_NEEDED)
    decision, world = decide([first, B], {"a": Allow(), "b": Allow(change=change)})
    assert decision.response.patch is None
    assert world.called() == ["a", "b"]


@pytest.mark.parametrize(
    "change",
    [
        Change(kind=ChangeKind.JSON_PATCH, content=b'[{"op":"add","path":"/metadata/labels/x","value":"1"}]'),
        Change(kind=ChangeKind.MERGE_PATCH, content=b'{"metadata":{"labels":{"x":"1"}}}'),
        Change(kind=ChangeKind.OBJECT, content=b'{"metadata":{"name":"p","labels":{"x":"1"}}}'),
    ],
)
def test_the_three_forms_of_a_change_say_the_same(change):
    """What counts is the difference between before and after."""
    decision, _ = decide([A], {"a": Allow(change=change)})
    assert json.loads(decision.response.patch) == [{"op": "add", "path": "/metadata/labels/x", "value": "1"}]


def test_the_first_denial_ends_the_chain():
    """Later policies are not called, and no patch goes out."""
    decision, world = decide([A, B, C], {"a": label("one"), "b": Deny(message="no"), "c": Allow()})
    assert world.called() == ["a", "b"]
    assert (decision.outcome, decision.response.allowed, decision.response.patch) == (Outcome.DENIED, False, None)


def test_a_failure_under_fail_ends_the_chain():
    """As a failed call of a webhook does."""
    decision, world = decide([A, B], {"a": BROKEN, "b": Allow()})
    assert world.called() == ["a"]
    assert decision.outcome is Outcome.FAILED
    assert decision.response.status.code == 500


def test_a_failure_under_ignore_is_passed_over():
    """The chain goes on, with the object as it was."""
    decision, world = decide([policy("a", **IGNORE), B], {"a": BROKEN, "b": label("two")})
    assert world.called() == ["a", "b"]
    assert decision.outcome is Outcome.ALLOWED
    assert decision.object["metadata"]["labels"] == {"two": "1"}


def test_a_patch_that_does_not_apply_is_a_failure_of_its_policy():
    """Under Ignore nothing of it is applied: a patch is atomic."""
    half = patch(
        {"op": "add", "path": "/metadata/labels/one", "value": "1"}, {"op": "remove", "path": "/metadata/missing"}
    )
    decision, _ = decide([policy("a", **IGNORE)], {"a": half})
    assert decision.calls[0].answer.reason is Reason.INVALID_PATCH
    assert decision.object == request().object


@pytest.mark.parametrize("more", [{}, IGNORE])
def test_a_verdict_is_kept_though_its_patch_does_not_apply(more):
    """kube-apiserver adds an answer's warnings and audit annotations before it applies the patch."""
    broken = replace(
        patch({"op": "remove", "path": "/metadata/missing"}), warnings=("careful",), audit_annotations={"k": "v"}
    )
    decision, _ = decide([policy("a", **more)], {"a": broken})
    assert "careful" in decision.response.warnings
    assert decision.response.audit_annotations[f"{decision.calls[0].label}_k"] == "v"


@pytest.mark.parametrize(
    "content", [b'[{"op":"replace","path":"","value":7}]', b'[{"op":"replace","path":"","value":[]}]']
)
def test_a_change_must_leave_an_object(content):
    """Kubernetes objects are JSON objects."""
    decision, _ = decide([A], {"a": Allow(change=Change(kind=ChangeKind.JSON_PATCH, content=content))})
    assert decision.calls[0].answer.reason is Reason.INVALID_PATCH


@pytest.mark.parametrize(
    ("kind", "content", "fine"),
    [
        (ChangeKind.JSON_PATCH, b"[]", True),
        (ChangeKind.JSON_PATCH, b" [ \n ] ", True),
        (ChangeKind.JSON_PATCH, b'[{"op":"add","path":"/x","value":1}]', False),
        (ChangeKind.KUBERNETES_PATCH, b"null", True),
        (ChangeKind.MERGE_PATCH, b"{}", True),
        (ChangeKind.MERGE_PATCH, b'{"x":1}', False),
        (ChangeKind.OBJECT, b"{}", False),
    ],
)
def test_there_is_nothing_to_change_on_delete(kind, content, fine):
    """ "attempted to modify the object, which is not supported for this operation"."""
    deleted = request(operation="DELETE", object=None, oldObject={"metadata": {}})
    change = Change(kind=kind, content=content)
    decision, _ = decide([A], {"a": Allow(change=change)}, on=deleted)
    assert decision.response.allowed is fine


def test_matching_is_decided_on_the_object_as_it_then_is():
    """An objectSelector sees an earlier policy's label, and one that it removed is gone."""
    wants = Selector(requirements=(Requirement(key="one", operator="Exists"),))
    shuns = Selector(requirements=(Requirement(key="one", operator="DoesNotExist"),))
    chain = [A, policy("b", index=1, object_selector=wants), policy("c", index=2, object_selector=shuns)]
    decision, world = decide(chain, {"a": label("one"), "b": Allow(), "c": Allow()})
    assert world.called() == ["a", "b"]
    assert (decision.calls[2].matched, decision.calls[2].why) == (False, "objectSelector")


# ------------------------------------------------------------------------------------------------ reinvocation


def unless(name, answer):
    """An answer once: allow without change if the label is there."""
    return lambda document: Allow() if name in (labels(document) or {}) else answer


REINVOCATIONS = {
    # who is IfNeeded, what each adds, who is called
    "a(IfNeeded) b(changes)": ("a", {"b": "x"}, "a b a"),
    "both IfNeeded, both change": ("a b", {"a": "x", "b": "y"}, "a b a"),
    "the last one alone changes": ("b", {"b": "x"}, "a b"),
    "never, never": ("", {"a": "x", "b": "y"}, "a b"),
    "nothing changes": ("a b", {}, "a b"),
}


@pytest.mark.parametrize(("needed", "changes", "calls"), REINVOCATIONS.values(), ids=REINVOCATIONS)
def test_reinvocation_follows_kubernetes_table(needed, changes, calls):
    """Seen on a real kube-apiserver, with each policy adding its label once. (a's label is there when it is called
    again.)"""
    chain = [
        policy(name, index=index, **(IF_NEEDED if name in needed.split() else {})) for index, name in enumerate("ab")
    ]
    behaviours = {name: unless(changes[name], label(changes[name])) if name in changes else Allow() for name in "ab"}
    _, world = decide(chain, behaviours)
    assert world.called() == calls.split()


def test_there_is_never_a_third_round():
    """A policy that changes the object each time is called twice, and what it did last stands."""

    def count(document):
        value = str(int(labels(document).get("n", "0")) + 1)
        return label("n", value)

    chain = [policy(name, index=index, **IF_NEEDED) for index, name in enumerate("abc")]
    decision, world = decide(chain, {"a": count, "b": count, "c": count})
    assert world.called() == ["a", "b", "c", "a", "b", "c"]
    assert decision.object["metadata"]["labels"]["n"] == "6"


def test_a_policy_that_did_not_match_in_the_first_round_is_not_called_in_the_second():
    """It was never called, so it is not marked."""
    wants = Selector(requirements=(Requirement(key="one", operator="Exists"),))
    chain = [policy("a", object_selector=wants, **IF_NEEDED), policy("b", index=1)]
    decision, world = decide(chain, {"a": Allow(), "b": label("one")})
    assert world.called() == ["b"]
    assert [call.why for call in decision.calls] == ["objectSelector", ""]


def test_a_policy_that_failed_open_counts_as_called():
    """It is marked, and called again."""
    chain = [policy("a", **IF_NEEDED, **IGNORE), policy("b", index=1)]
    _, world = decide(chain, {"a": BROKEN, "b": label("one")})
    assert world.called() == ["a", "b", "a"]


def test_an_unchanged_document_costs_no_second_call():
    """The memo answers it: b undid what a did, so a's document is what it was."""
    undo = patch({"op": "remove", "path": "/metadata/labels/one"})
    chain = [policy("a", **IF_NEEDED), policy("b", index=1)]
    decision, world = decide(chain, {"a": label("one"), "b": unless("zero", undo)})
    assert world.called() == ["a", "b"]
    assert [(call.round, call.source) for call in decision.calls if call.matched][-1] == (1, Source.MEMO)
    assert decision.object["metadata"]["labels"] == {"one": "1"}, "a verdict from the memo is applied like a fresh one"


def test_who_is_not_reinvoked_fails_open_once():
    """A policy that cannot be matched and fails open does so in the first round only: the second does not call it."""
    elsewhere = Rule(operations=("*",), api_groups=("",), api_versions=("v9",), resources=("pods",))
    decision, _ = decide([policy("a", rules=(elsewhere,), **IGNORE), B], {"b": label("x")})
    assert [call.round for call in decision.calls if call.failed_open] == [0]
