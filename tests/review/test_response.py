"""Writing the answer: never one that kube-apiserver would misread."""

import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.review.response import Response, Status, annotation_key, encode

KEY = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def sent(response, *, mutating=True, api_version="admission.k8s.io/v1"):
    return json.loads(encode(response, uid="u1", api_version=api_version, mutating=mutating))


@pytest.mark.parametrize("api_version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_uid_and_version_are_those_of_the_question(api_version):
    """ "expected response.uid=..., expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview"."""
    answer = sent(Response(allowed=True), api_version=api_version)
    assert answer == {"kind": "AdmissionReview", "apiVersion": api_version, "response": {"uid": "u1", "allowed": True}}


def test_a_patch_goes_out_as_base64_with_its_type():
    """Both or neither: each alone fails the call."""
    response = sent(Response(allowed=True, patch=b'[{"op":"remove","path":"/a"}]'))["response"]
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == [{"op": "remove", "path": "/a"}]


def test_an_empty_patch_is_not_sent():
    """kube-apiserver may count a patch that changes nothing as a change, and reinvoke."""
    assert sent(Response(allowed=True, patch=b"[]"))["response"] == {"uid": "u1", "allowed": True}


@pytest.mark.parametrize(("allowed", "mutating"), [(True, False), (False, True)])
def test_a_patch_elsewhere_is_our_error_and_is_not_sent(allowed, mutating):
    """ "validating webhook may not return response.patch"; and the patch of a denial means nothing."""
    with pytest.raises(ValueError, match="patch"):
        sent(Response(allowed=allowed, patch=b"[1]"), mutating=mutating)


def test_a_refusal_is_a_whole_status():
    """code, message, reason, details as given; status is Failure."""
    status = Status(code=422, message="m", reason="Invalid", details={"causes": [{"field": "f"}]})
    assert sent(Response(allowed=False, status=status))["response"]["status"] == {
        "status": "Failure",
        "code": 422,
        "message": "m",
        "reason": "Invalid",
        "details": {"causes": [{"field": "f"}]},
    }


@pytest.mark.parametrize(
    ("code", "out"), [(399, 400), (400, 400), (599, 599), (600, 400), (1000, 400), (0, 400), (-1, 400)]
)
def test_a_refusals_code_is_an_http_error(code, out):
    """Code 1000 panics kube-apiserver's request handler; below 400 it makes 400 of it itself."""
    assert sent(Response(allowed=False, status=Status(code=code)))["response"]["status"]["code"] == out


def test_a_refusal_without_status_still_refuses():
    """There is no way to build a refusal that passes."""
    assert sent(Response(allowed=False))["response"]["status"] == {"status": "Failure", "code": 400}


@pytest.mark.parametrize(
    ("given_", "shown"),
    [
        (("a\nb",), ["a b"]),
        (("a\x00\x1b[31mb\x7f\x85",), ["a [31mb"]),
        (("", " ", "\n"), None),
        (("a", "b", "a"), ["a", "b"]),
        (("ünïcode ✓",), ["ünïcode ✓"]),
    ],
)
def test_warnings_are_such_as_kubernetes_shows(given_, shown):
    """A warning with a control character would be dropped silently; doubles and empty ones are noise."""
    assert sent(Response(allowed=True, warnings=given_))["response"].get("warnings") == shown


@pytest.mark.property
@given(st.lists(st.text(max_size=900), max_size=40))
def test_warnings_fit_into_kubernetes_limits_and_nothing_is_lost_silently(texts):
    """In total at most 4096 characters, or each cut to 256 by ourselves, and the last one says how many are missing."""
    shown = sent(Response(allowed=True, warnings=tuple(texts)))["response"].get("warnings", [])
    assert sum(map(len, shown)) <= 4096
    assert len(set(shown)) == len(shown)
    assert not any(re.search(r"[\x00-\x1f\x7f-\x9f]", text) for text in shown)
    distinct = {re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", text).strip() for text in texts} - {""}
    if len(shown) < len({text[:255] for text in distinct}):
        assert "left out" in shown[-1]


@pytest.mark.property
@given(st.text(min_size=1, max_size=80), st.text(max_size=80))
def test_an_annotation_key_is_legal_and_keeps_questions_apart(policy, key):
    """Kubernetes drops an illegal key with nothing but a log line."""
    made = annotation_key(policy, key)
    assert len(made) <= 63
    assert KEY.fullmatch(made)
    assert made == annotation_key(policy, key)


def test_a_short_legal_annotation_key_is_left_alone():
    """POLICY_key."""
    assert annotation_key("labels.example.com", "who") == "labels.example.com_who"


def test_keys_that_are_cut_stay_different():
    """A hash takes the place of what was lost."""
    assert annotation_key("p" * 70, "a") != annotation_key("p" * 70, "b")
    assert annotation_key("p", "a/b") != annotation_key("p", "a-b")
