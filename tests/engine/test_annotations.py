"""The audit annotations that kube-apiserver would have written, had each policy been a webhook of its own."""

import json

import pytest

from gateway.cel.program import EvaluationError
from gateway.engine.verdicts import Allow, Change, ChangeKind, Failure
from gateway.policies.model import FailurePolicy, Mode, Phase, Requirement, Selector, SideEffects
from gateway.reasons import Reason
from tests.world import condition, decide, label, patch, policy, request

IGNORE = {"failure_policy": FailurePolicy.IGNORE}
BROKEN = Failure(reason=Reason.WORKER_FAILURE, message="it broke")
ERROR = condition(EvaluationError(message="no such key: nope"))
MUTATION = "mutation.webhook.admission.k8s.io/round_0_index_0"
PATCH = "patch.webhook.admission.k8s.io/round_0_index_0"


def test_the_decision_knows_the_annotations_that_kubernetes_would_have_written():
    """mutation, patch and failed-open, by round and index over all webhooks, skipped ones included."""
    elsewhere = Selector(requirements=(Requirement(key="x", operator="Exists"),))
    chain = [policy("a", object_selector=elsewhere), policy("b", index=1), policy("c", index=2, **IGNORE)]
    broken = Failure(reason=Reason.WORKER_FAILURE, message="it broke")
    decision, _ = decide(chain, {"b": label("one"), "c": broken})
    annotations = decision.kubernetes_annotations()
    assert annotations == {
        "mutation.webhook.admission.k8s.io/round_0_index_1": (
            '{"configuration":"test","webhook":"b.test.example.com","mutated":true}'
        ),
        "patch.webhook.admission.k8s.io/round_0_index_1": (
            '{"configuration":"test","webhook":"b.test.example.com",'
            '"patch":[{"op":"add","path":"/metadata/labels/one","value":"1"}],"patchType":"JSONPatch"}'
        ),
        "mutation.webhook.admission.k8s.io/round_0_index_2": (
            '{"configuration":"test","webhook":"c.test.example.com","mutated":false}'
        ),
        "failed-open.mutation.webhook.admission.k8s.io/round_0_index_2": "c.test.example.com",
    }


def test_while_validating_only_those_that_matched_are_counted():
    """failed-open.validating...round_0_index_J."""
    elsewhere = Selector(requirements=(Requirement(key="x", operator="Exists"),))
    validating = {"phase": Phase.VALIDATING}
    chain = [
        policy("a", object_selector=elsewhere, **validating),
        policy("b", index=1, **validating),
        policy("c", index=2, **IGNORE, **validating),
    ]
    broken = Failure(reason=Reason.WORKER_FAILURE, message="it broke")
    decision, _ = decide(chain, {"b": Allow(), "c": broken})
    assert decision.kubernetes_annotations() == {
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_1": "c.test.example.com"
    }


NO_OP = {"op": "replace", "path": "/metadata/name", "value": "p"}


@pytest.mark.parametrize(
    ("change", "mutated", "said"),
    [
        (patch(NO_OP), False, [NO_OP]),
        (patch(), False, None),
        (patch({"value": "1", "path": "/x", "op": "add"}), True, [{"op": "add", "path": "/x", "value": "1"}]),
        (Allow(change=Change(kind=ChangeKind.JSON_PATCH, content=b" null ")), False, None),
        (
            Allow(change=Change(kind=ChangeKind.MERGE_PATCH, content=b'{"x":1}')),
            True,
            [{"op": "add", "path": "/x", "value": 1}],
        ),
        (Allow(change=Change(kind=ChangeKind.MERGE_PATCH, content=b"{}")), False, None),
        (Allow(), False, None),
    ],
    ids=["changes nothing", "empty", "unsorted", "null", "merge patch", "empty merge patch", "no change"],
)
def test_the_patch_is_the_one_the_worker_sent(change, mutated, said):
    """A patch with operations is annotated whatever it came to; ``mutated`` says whether the object is another one."""
    decision, _ = decide([policy("a", **IGNORE)], {"a": change})
    annotations = decision.kubernetes_annotations()
    assert json.loads(annotations[MUTATION])["mutated"] is mutated
    assert (json.loads(annotations[PATCH])["patch"] if PATCH in annotations else None) == said


def test_a_patch_is_written_as_go_writes_it():
    """Members sorted, no blanks, values untouched."""
    content = b'[ {"value": {"b":1, "a":2}, "path": "/x", "op": "add"} ]'
    decision, _ = decide([policy("a")], {"a": Allow(change=Change(kind=ChangeKind.JSON_PATCH, content=content))})
    assert '"patch":[{"op":"add","path":"/x","value":{"b":1,"a":2}}]' in decision.kubernetes_annotations()[PATCH]


def test_a_policy_that_could_not_be_matched_was_not_called():
    """A condition error under Ignore: no webhook would have been called, and none failed open."""
    decision, _ = decide([policy("a", match_conditions=(ERROR,), **IGNORE)], {})
    assert decision.response.allowed
    assert decision.kubernetes_annotations() == {}


def test_while_validating_a_policy_that_could_not_be_matched_is_not_counted():
    """Nor does it take a place in the count of those called."""
    validating = {"phase": Phase.VALIDATING, **IGNORE}
    pair = [policy("a", match_conditions=(ERROR,), **validating), policy("b", index=1, **validating)]
    decision, _ = decide(pair, {"b": BROKEN})
    assert decision.kubernetes_annotations() == {
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "b.test.example.com"
    }


def test_a_refused_dry_run_is_annotated():
    """Its mutation is annotated before the call would begin."""
    decision, _ = decide([policy("a", side_effects=SideEffects.SOME)], {}, on=request(dryRun=True))
    assert list(decision.kubernetes_annotations()) == [MUTATION]


@pytest.mark.parametrize("answer", [label("x"), BROKEN])
def test_a_policy_that_is_not_enforced_mutates_nothing_and_fails_open_nowhere(answer):
    """Kubernetes has no such mode: the closest is a webhook that was called and changed nothing."""
    decision, _ = decide([policy("a", mode=Mode.AUDIT, **IGNORE)], {"a": answer})
    assert list(decision.kubernetes_annotations()) == [MUTATION]
    assert json.loads(decision.kubernetes_annotations()[MUTATION])["mutated"] is False
