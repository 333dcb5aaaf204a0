"""Differences from separate webhooks that no other test states; docs/differences.md lists them all."""

import json

import pytest

from gateway.cel.program import EvaluationError
from gateway.documents.documents import hashed
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Deny, Failure
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import Phase, ReinvocationPolicy
from gateway.reasons import Reason
from gateway.transports.messages import outcome_answer
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.world import condition, decide, label, patch, policy


@pytest.mark.parametrize(
    ("deny", "code", "reason"),
    [
        (pb.Deny(), 403, "Forbidden"),
        (pb.Deny(code=418), 418, ""),
        (pb.Deny(reason="Invalid"), 403, "Invalid"),
        (pb.Deny(code=422, reason="Invalid"), 422, "Invalid"),
    ],
)
def test_a_denial_without_a_code_is_forbidden(deny, code, reason):
    """A worker that names no code denies with 403 Forbidden; one that names a code gets that, and its own reason."""
    call = PolicyCall(id=1, policy=policy("a"), document=hashed(b"{}"), deadline=1.0, uid="u1", cancellable=True)
    answer = outcome_answer(call, pb.Outcome(deny=deny), characters=100)
    assert isinstance(answer, Deny)
    assert (answer.code, answer.reason) == (code, reason)


def test_details_are_the_first_refusals_and_causes_name_each():
    """Of several refusals the first one's details go out, with a cause for each; the others' details do not."""
    policies = [policy(name, phase=Phase.VALIDATING, index=index) for index, name in enumerate("abc")]
    own = [{"field": "spec", "message": "is bad"}]
    decision, _ = decide(
        policies,
        {
            "a": Failure(reason=Reason.WORKER_FAILURE, message="cannot"),
            "b": Deny(message="no", details={"kind": "Pod", "causes": own}),
            "c": Deny(message="nor I", details={"name": "hidden"}),
        },
    )
    details = decision.response.status.details
    assert (details["kind"], "name" in details) == ("Pod", False)
    assert details["causes"] == [
        *own,
        {"reason": "DENIED", "message": "b.test.example.com: no"},
        {"reason": "DENIED", "message": "c.test.example.com: nor I"},
        {"reason": "WORKER_FAILURE", "message": "a.test.example.com: WORKER_FAILURE: cannot"},
    ]


def test_an_annotation_of_the_second_round_does_not_replace_the_firsts():
    """A policy that is called twice keeps the value that it gave first, as kube-apiserver keeps it."""

    def twice(document):
        labels = document["object"]["metadata"]["labels"]
        number = "second" if "b" in labels else "first"
        addition = {"op": "add", "path": f"/metadata/labels/{number}", "value": "1"}
        return patch(addition, audit_annotations={"round": number})

    policies = [policy("a", reinvocation_policy=ReinvocationPolicy.IF_NEEDED), policy("b", index=1)]
    decision, world = decide(policies, {"a": twice, "b": label("b")})
    assert world.called() == ["a", "b", "a"]
    assert decision.response.audit_annotations["a.test.example.com_round"] == "first"


def test_each_call_is_a_review_of_its_own():
    """Nothing is remembered from one call to the next: a policy under Never is called again when kube-apiserver is."""
    policies = [policy("a", reinvocation_policy=ReinvocationPolicy.NEVER)]
    assert [decide(policies, {"a": label("a")})[1].called() for _ in range(2)] == [["a"], ["a"]]


def test_after_a_condition_error_the_other_policies_are_still_called():
    """While validating, a policy that cannot be matched refuses, and the others are still called and reported."""
    error = condition(EvaluationError(message="no such key: nope"))
    policies = [
        policy("a", phase=Phase.VALIDATING, match_conditions=(error,)),
        policy("b", phase=Phase.VALIDATING, index=1),
    ]
    decision, world = decide(policies, {"b": Deny(message="no")})
    assert world.called() == ["b"]
    lines = decision.response.status.message.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["b.test.example.com", "no"],
        ["a.test.example.com", "CONDITION_ERROR"],
    ]


def native(**client_config):
    """The errors of a webhook with this clientConfig: path and message of each."""
    webhook = {
        "name": "a.example.com",
        "clientConfig": client_config,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    document = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "a"},
        "webhooks": [webhook],
    }
    loaded = load([SourceText(name="a.json", content=json.dumps(document).encode())])
    return [(error.place.path, error.message) for error in loaded.errors]


def test_twenty_errors_of_a_path_are_reported():
    """A path of a hundred slashes has twenty errors, not a hundred."""
    said = native(service={"namespace": "a", "name": "a", "path": "/" * 100})
    assert {path for path, _ in said} == {"webhooks[0].clientConfig.service.path"}
    assert len(said) == 20


def test_a_bad_address_in_a_url_is_reported_without_detail():
    """Go says of which field of the address something is wrong; here it is only said that it cannot be read."""
    ((path, message),) = native(url="https://[::zz]/")
    assert path == "webhooks[0].clientConfig.url"
    assert 'invalid host: ParseAddr("::zz"): unable to parse IP' in message
