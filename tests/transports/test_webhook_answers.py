"""A webhook's answer, as the engine gets it: allow, deny or failure, in kube-apiserver's words."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.verdicts import Allow, ChangeKind, Deny, Failure
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.review.request import API_VERSIONS
from gateway.transports.webhook_answers import review_answer

V1, V1BETA1 = API_VERSIONS


def said(response, *, phase=Phase.MUTATING, api_version=V1):
    """What a webhook that sends this response says."""
    body = json.dumps({"apiVersion": api_version, "kind": "AdmissionReview", "response": {"uid": "u", **response}})
    return review_answer("w.example.com", body.encode(), uid="u", api_version=api_version, phase=phase)


def patch(text, patch_type="JSONPatch"):
    """The members of a response with a patch."""
    return {"allowed": True, "patch": base64.b64encode(text).decode(), "patchType": patch_type}


def test_an_allow():
    """Warnings and audit annotations are kept; a patch is one in kube-apiserver's dialect."""
    answer = said({**patch(b'[{"op":"x"}]'), "warnings": ["w"], "auditAnnotations": {"k": "v"}})
    assert (answer.warnings, answer.audit_annotations) == (("w",), {"k": "v"})
    assert (answer.change.kind, answer.change.content) == (ChangeKind.KUBERNETES_PATCH, b'[{"op":"x"}]')


@pytest.mark.parametrize("text", [b"[]", b"null", b" [\n] "])
@pytest.mark.parametrize("patch_type", ["JSONPatch", "MergePatch"])
def test_a_patch_without_operations_is_none(text, patch_type):
    """Such a patch changes nothing, and its type is not checked."""
    assert said(patch(text, patch_type)) == Allow()


def test_another_patch_type_is_a_failure():
    """There is one patch type; any other is an error of the call. What the answer said besides is kept."""
    failure = said({**patch(b"{}", "MergePatch"), "warnings": ["w"], "auditAnnotations": {"k": "v"}})
    assert failure == Failure(
        reason=Reason.INVALID_RESPONSE,
        message='failed calling webhook "w.example.com": unsupported patch type "MergePatch"',
        warnings=("w",),
        audit_annotations={"k": "v"},
    )


def test_a_denial_in_full():
    """Code, message, reason and details are the webhook's own; whatever patch it has is not looked at."""
    status = {"code": 422, "message": "no", "reason": "Invalid", "details": {"causes": [{"field": "f"}]}}
    answer = said({**patch(b"broken", "X"), "allowed": False, "status": status, "warnings": ["w"]})
    assert answer == Deny(
        code=422, message="no", reason="Invalid", details={"causes": [{"field": "f"}]}, warnings=("w",)
    )


@pytest.mark.parametrize("response", [{}, {"allowed": False}, {"status": None}, {"status": {}}], ids=str)
def test_a_denial_without_explanation(response):
    """A webhook that says nothing denies, without code, reason or message; it is not the worker's 403."""
    answer = said(response)
    assert (answer.code, answer.message, answer.reason, answer.details) == (0, "", "", None)


def test_a_validating_webhooks_patch_is_a_failure():
    """In v1 a patch in the validating phase is an error of the call; in v1beta1 it is ignored."""
    failure = said(patch(b"[]"), phase=Phase.VALIDATING)
    assert failure.reason is Reason.INVALID_RESPONSE
    assert failure.message == (
        'failed calling webhook "w.example.com": received invalid webhook response: '
        "validating webhook may not return response.patch"
    )
    assert said(patch(b'[{"op":"x"}]'), phase=Phase.VALIDATING, api_version=V1BETA1) == Allow()


@pytest.mark.property
@given(st.binary(max_size=200), st.sampled_from(Phase))
def test_any_body_is_an_answer(body, phase):
    """Whatever a webhook sends is an allow, a deny or a failure."""
    answer = review_answer("w", body, uid="u", api_version=V1, phase=phase)
    assert isinstance(answer, Allow | Deny | Failure)


@pytest.mark.parametrize(
    "response",
    [
        {"allowed": True, "warnings": ["w"] * 1_001},
        {"allowed": True, "auditAnnotations": {f"k{index}": "v" for index in range(1_001)}},
        {"allowed": False, "status": {"details": {"causes": [{"field": "f"}] * 1_001}}},
    ],
)
def test_an_answer_has_so_many_statements(response):
    """A million warnings or audit annotations would keep the gateway from everything else for a second."""
    failure = said(response)
    assert (failure.reason, "1001 warnings" in failure.message) == (Reason.INVALID_RESPONSE, True)
    assert isinstance(said({"allowed": True, "warnings": ["w"] * 1_000}), Allow)
