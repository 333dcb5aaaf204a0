"""What a policy is not shown it does not get, and what it may not write stays."""

import json

import pytest
from msgspec.structs import replace

from gateway.engine.verdicts import Allow, Change, ChangeKind, Failure
from gateway.policies.model import FailurePolicy, Mode, Phase
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes
from tests.world import PODS, decide, label, patch, policy, request

POD = {
    "metadata": {"name": "p", "labels": {"a": "1"}, "annotations": {"password": "hunter2"}},
    "spec": {"nodeName": "n"},
}
LABELS = Inputs(places=PointerSet([("object", "metadata", "labels")]))
COPY = {"op": "copy", "from": "/metadata/annotations/password", "path": "/metadata/labels/b"}
TEST = {"op": "test", "path": "/metadata/annotations/password", "value": "hunter2"}


def outcome(answer, **fields):
    decision, world = decide([policy("a", **fields)], {"a": answer}, on=request(POD))
    return decision, json.loads(world.calls[0][1].document.content)


def change(kind, content):
    return Allow(change=Change(kind=kind, content=json.dumps(content).encode()))


def test_a_document_holds_what_the_inputs_show():
    """And what every document holds."""
    _, document = outcome(Allow(), inputs=LABELS)
    assert document["object"] == {"metadata": {"labels": {"a": "1"}}}
    assert set(document) == {"kind", "resource", "operation", "object", "dryRun"}


def test_two_policies_with_other_inputs_get_other_documents():
    """Each its own."""
    pair = [policy("a", inputs=LABELS), policy("b", index=1, inputs=Inputs(places=PointerSet([("object", "spec")])))]
    _, world = decide(pair, {"a": Allow(), "b": Allow()}, on=request(POD))
    objects = [json.loads(policy_call.document.content)["object"] for _, policy_call in world.calls]
    assert objects == [{"metadata": {"labels": {"a": "1"}}}, {"spec": {"nodeName": "n"}}]


@pytest.mark.parametrize("operation", [COPY, TEST])
@pytest.mark.parametrize("mode", list(Mode))
def test_a_patch_that_reads_what_was_hidden_is_outside_the_scope(operation, mode):
    """Nothing of it is applied, or even worked out, whatever the mode; the message has no value."""
    add = {"op": "add", "path": "/metadata/labels/c", "value": "1"}
    decision, _ = outcome(patch(add, operation), inputs=LABELS, mode=mode, failure_policy=FailurePolicy.IGNORE)
    call = decision.calls[0]
    assert call.answer.reason is Reason.WRITE_SCOPE
    assert "hunter2" not in call.answer.message
    assert (call.changes, call.would_change) == ((), ())
    assert decision.object == POD


@pytest.mark.parametrize("writes", [Writes(granted=PointerSet([("metadata", "labels")])), Writes.DEFAULT])
@pytest.mark.parametrize("stands", ["guess", "another", "", None, 1])
def test_a_merge_patch_does_not_reveal_a_hidden_value(writes, stands):
    """What it may not write, together with what it may, is outside the scope whether or not it is there already."""
    guess = {"metadata": {"labels": {"hit": "1"}, "uid": "guess"}}
    pod = {**POD, "metadata": {**POD["metadata"], "uid": stands}}
    answer = change(ChangeKind.MERGE_PATCH, guess)
    decision, _ = decide([policy("a", inputs=LABELS, writes=writes)], {"a": answer}, on=request(pod))
    call = decision.calls[0]
    assert call.answer.reason is Reason.WRITE_SCOPE
    assert call.answer.message.startswith("the policy may not change /metadata/uid")


@pytest.mark.parametrize(
    "merge",
    [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"b": "1"}}},
        {"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {}},
        {"metadata": {"labels": {"b": "1"}, "uid": None}},
    ],
)
def test_a_merge_patch_may_repeat_what_is_no_secret(merge):
    """What it was shown, what kind of object it is, and what it does not change whatever stands there."""
    pod = {"apiVersion": "v1", "kind": "Pod", **POD}
    writes = Writes(granted=PointerSet([("metadata", "labels")]))
    answer = change(ChangeKind.MERGE_PATCH, merge)
    decision, _ = decide([policy("a", inputs=LABELS, writes=writes)], {"a": answer}, on=request(pod))
    assert decision.object == {**pod, "metadata": {**pod["metadata"], "labels": {"a": "1", "b": "1"}}}


def test_a_whole_object_is_compared_with_the_one_that_was_sent():
    """What was hidden stays."""
    sent = {"metadata": {"labels": {"a": "2"}}}
    decision, _ = outcome(change(ChangeKind.OBJECT, sent), inputs=LABELS)
    assert decision.object == {**POD, "metadata": {**POD["metadata"], "labels": {"a": "2"}}}


@pytest.mark.parametrize(
    "answer",
    [
        patch({"op": "add", "path": "/spec/nodeName", "value": "m"}),
        change(ChangeKind.MERGE_PATCH, {"spec": {"nodeName": "m"}}),
        change(ChangeKind.OBJECT, {**POD, "spec": {"nodeName": "m"}}),
    ],
)
def test_a_change_outside_writes_is_a_failure_whatever_its_form(answer):
    """It is judged on the difference between before and after."""
    decision, _ = outcome(answer, writes=Writes(granted=PointerSet([("metadata", "labels")])))
    assert decision.calls[0].answer.reason is Reason.WRITE_SCOPE
    assert decision.response.patch is None


def test_a_change_inside_writes_is_applied():
    """That is what they grant."""
    decision, _ = outcome(label("b"), writes=Writes(granted=PointerSet([("metadata", "labels")])))
    assert decision.object["metadata"]["labels"] == {"a": "1", "b": "1"}


@pytest.mark.parametrize(("sub_resource", "applied"), [("", False), ("status", True)])
def test_by_default_status_is_changed_only_where_it_is_the_request(sub_resource, applied):
    """It belongs to the component that reports it."""
    rule = replace(PODS, resources=("pods", "pods/status"))
    add = patch({"op": "add", "path": "/status", "value": {"phase": "Running"}})
    decision, _ = decide([policy("a", rules=(rule,))], {"a": add}, on=request(POD, subResource=sub_resource))
    assert ("status" in decision.object) is applied


# ------------------------------------------------------------------------------------------- namespaceObject

NAMESPACE = Inputs(places=PointerSet([("namespaceObject", "metadata", "labels", "env")]))


def test_inputs_of_the_namespace_look_it_up_and_show_its_labels():
    """Those that are declared."""
    reported = {"namespaces": {"t": {"env": "prod", "other": "x"}}}
    decision, world = decide([policy("a", inputs=NAMESPACE)], {"a": Allow()}, **reported)
    document = json.loads(world.calls[0][1].document.content)
    assert document["namespaceObject"] == {"metadata": {"labels": {"env": "prod"}}}
    assert decision.calls[0].answer == Allow()


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("prefetch", [False, True])
def test_an_unknown_namespace_is_a_failure_of_the_policy_that_must_see_it(phase, prefetch):
    """Unknown labels do not allow; no policy is called with a document without them."""
    ignore = {"phase": phase, "failure_policy": FailurePolicy.IGNORE}
    pair = [policy("a", **ignore), policy("b", index=1, inputs=NAMESPACE, **ignore)]
    decision, world = decide(pair, {"a": Allow()}, namespaces={"t": None}, prefetch=prefetch)
    assert world.called() == ["a"]
    assert decision.calls[1].answer.reason is Reason.NAMESPACE_UNKNOWN
    assert not decision.response.allowed


def test_a_namespace_that_is_not_found_in_time_is_a_failure():
    """The policy's own time ends it."""
    reported = {"namespaces": {"t": {}}, "lookup_latency": float("inf")}
    decision, _ = decide([policy("a", inputs=NAMESPACE, timeout=1.0)], {}, **reported)
    assert isinstance(decision.calls[0].answer, Failure)
    assert decision.ended - decision.started == 1.0


def test_a_cluster_scoped_request_needs_no_namespace():
    """There is none to show."""
    _, world = decide([policy("a", inputs=NAMESPACE)], {"a": Allow()}, on=request(namespace=""))
    assert world.lookups == []
    assert world.called() == ["a"]
