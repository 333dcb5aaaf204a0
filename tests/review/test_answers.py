"""A webhook's answer, read as kube-apiserver reads it: the outcomes and the words are its own, of Kubernetes 1.36.3."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.review.answers import AnswerError, WebhookStatus, read_answer
from gateway.review.request import API_VERSIONS

V1, V1BETA1 = API_VERSIONS
UID = "u"
CALL = "failed to call webhook: "
RESPONSE = "received invalid webhook response: "
STRUCT = CALL + "json: cannot unmarshal {} into Go struct field {} of type {}"
PATCH = base64.b64encode(b'[{"op":"add"}]').decode()


def body(response=None, **members):
    """A v1 review with this response, the uid filled in."""
    filled = {"uid": UID, **response} if isinstance(response, dict) else response
    return json.dumps({"apiVersion": V1, "kind": "AdmissionReview", "response": filled} | members).encode()


def answer(content, *, api_version=V1, mutating=True):
    """The answer that a body is."""
    return read_answer(content, uid=UID, api_version=api_version, mutating=mutating)


def said(content, **options):
    """The error that a body is."""
    with pytest.raises(AnswerError) as caught:
        answer(content, **options)
    return str(caught.value)


# ---------------------------------------------------------------------------------------------------- accepted


def test_an_answer_in_full():
    """Everything that an AdmissionResponse may say is kept."""
    status = {
        "status": "Failure",
        "message": "no",
        "reason": "Invalid",
        "code": 422,
        "details": {"name": "n", "causes": [{"reason": "r", "field": "f"}], "retryAfterSeconds": 3},
    }
    read = answer(
        body({"allowed": False, "status": status, "warnings": ["w", "w"], "auditAnnotations": {"k": "v"}}),
        mutating=False,
    )
    assert read.status == WebhookStatus(**status)
    assert (read.allowed, read.warnings, read.audit_annotations) == (False, ("w", "w"), {"k": "v"})
    assert (read.patch, read.patch_type) == (None, "")


@pytest.mark.parametrize(
    ("response", "allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": False}, False),
        ({}, False),
        ({"allowed": None}, False),
        ({"Allowed": True}, False),
        ({"allowed": True, "unknown": [{}]}, True),
    ],
    ids=str,
)
def test_without_allowed_it_is_a_denial(response, allowed):
    """Whatever is not ``allowed: true``, in this case, is no allow."""
    assert answer(body(response)).allowed is allowed


@pytest.mark.parametrize(
    "response",
    [
        {"status": None},
        {"status": {"message": None, "code": None, "details": None, "metadata": None}},
        {"warnings": None, "auditAnnotations": None, "patch": None, "patchType": None},
        {"patch": "", "patchType": None},
    ],
    ids=str,
)
def test_null_says_nothing(response):
    """A member that is null is as good as absent."""
    read = answer(body(response))
    assert read.status in {None, WebhookStatus()}
    assert (read.warnings, dict(read.audit_annotations), read.patch) == ((), {}, None)


def test_null_in_a_list_or_map_is_empty():
    """An element that is null is the empty string."""
    read = answer(body({"warnings": [None, "w"], "auditAnnotations": {"k": None}}))
    assert (read.warnings, read.audit_annotations) == (("", "w"), {"k": ""})


@pytest.mark.parametrize(
    ("written", "patch"),
    [
        ("QUI=", b"AB"),
        ("Q\nU\r\nI=", b"AB"),
        ([65, None, 66], b"A\x00B"),
    ],
)
def test_a_patch_is_bytes(written, patch):
    """base64 with or without line breaks, or an array of bytes."""
    read = answer(body({"patch": written, "patchType": "anything"}))
    assert (read.patch, read.patch_type) == (patch, "anything")


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + body({"allowed": True}),
        b" \n" + body({"allowed": True}) + b"\r\n\t",
        body({"allowed": True}, request={"uid": "other", "object": {"a": [1]}, "dryRun": None}),
        body({"allowed": False}).replace(b"false", b'false, "allowed": true'),
        body({"allowed": True}).replace(b"true", b'true, "allowed": null'),
        body({}).replace(b'"response"', b'"response": {"allowed": true}, "response"'),
    ],
    ids=["byte order mark", "blanks", "request echoed", "last counts", "null after", "twice"],
)
def test_what_is_lax(content):
    """What kube-apiserver's decoder lets pass is let pass."""
    assert answer(content).allowed


def test_what_is_no_text_is_replaced():
    """Bytes that are no UTF-8, and halves of surrogates, are U+FFFD."""
    content = body({"warnings": ["x"]}).replace(b'"x"', b'"a\xffb", "a\\ud800b"')
    assert answer(content).warnings == ("a\ufffdb", "a\ufffdb")


def test_v1beta1_verifies_little():
    """A v1beta1 answer needs no uid, kind or patchType; its patch is a JSONPatch, and ignored while validating."""
    content = json.dumps({"response": {"uid": "another", "allowed": True, "patch": PATCH}}).encode()
    mutating = answer(content, api_version=V1BETA1)
    assert (mutating.allowed, mutating.patch, mutating.patch_type) == (True, b'[{"op":"add"}]', "JSONPatch")
    validating = answer(content, api_version=V1BETA1, mutating=False)
    assert (validating.allowed, validating.patch, validating.patch_type) == (True, None, "")


# ----------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (None, "webhook response was absent"),
        ({"uid": "nope"}, 'expected response.uid="u", got "nope"'),
        ({"uid": None}, 'expected response.uid="u", got ""'),
        ({"patch": PATCH}, "webhook returned response.patch but not response.patchType"),
        ({"patchType": "JSONPatch"}, "webhook returned response.patchType but not response.patch"),
        ({"patch": "", "patchType": ""}, "webhook returned response.patchType but not response.patch"),
        ({"patch": PATCH, "patchType": ""}, 'webhook returned invalid response.patchType of ""'),
    ],
    ids=str,
)
def test_what_does_not_verify(response, message):
    """Each check of VerifyAdmissionResponse, in its words."""
    assert said(body(response)) == RESPONSE + message


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"patch": PATCH}, "validating webhook may not return response.patch"),
        ({"patch": PATCH, "patchType": "JSONPatch"}, "validating webhook may not return response.patch"),
        ({"patchType": ""}, "validating webhook may not return response.patchType"),
    ],
    ids=str,
)
def test_a_validating_webhook_returns_no_patch(response, message):
    """Neither a patch nor its type, even with an empty patch."""
    assert said(body(response), mutating=False) == RESPONSE + message


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"apiVersion": None}, RESPONSE + "expected webhook response of {}, got /, Kind=AdmissionReview"),
        ({"kind": ""}, RESPONSE + "expected webhook response of {}, got admission.k8s.io/v1, Kind="),
        ({"apiVersion": "", "kind": None}, RESPONSE + "expected webhook response of {}, got /, Kind="),
        (
            {"apiVersion": "admission.k8s.io/v2"},
            CALL + 'no kind "AdmissionReview" is registered for version "admission.k8s.io/v2" in scheme {scheme}',
        ),
        ({"kind": "Foo"}, CALL + 'no kind "Foo" is registered for version "admission.k8s.io/v1" in scheme {scheme}'),
        ({"apiVersion": "a/b/c"}, CALL + "unexpected GroupVersion string: a/b/c"),
        (
            {"apiVersion": V1BETA1},
            CALL + "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
        (
            {"apiVersion": "v1", "kind": "Status"},
            CALL + "converting (v1.Status) to (v1.AdmissionReview): unknown conversion",
        ),
    ],
    ids=str,
)
def test_another_kind_or_version(members, message):
    """apiVersion and kind of the answer must be those of the request."""
    expected = message.format("admission.k8s.io/v1, Kind=AdmissionReview", scheme='"pkg/runtime/scheme.go:111"')
    assert said(body({"allowed": True}, **members)) == expected


@pytest.mark.parametrize(
    ("response", "found", "field", "go"),
    [
        ("x", "string", "AdmissionReview.response", "v1.AdmissionResponse"),
        ({"allowed": "yes"}, "string", "AdmissionResponse.response.allowed", "bool"),
        ({"uid": 5}, "number", "AdmissionResponse.response.uid", "types.UID"),
        ({"status": "x"}, "string", "AdmissionResponse.response.status", "v1.Status"),
        ({"status": {"code": "4"}}, "string", "Status.response.status.code", "int32"),
        ({"status": {"code": 4.0}}, "number 4.0", "Status.response.status.code", "int32"),
        ({"status": {"code": 3000000000}}, "number 3000000000", "Status.response.status.code", "int32"),
        ({"status": {"code": True}}, "bool", "Status.response.status.code", "int32"),
        (
            {"status": {"details": {"causes": [{"reason": 1}]}}},
            "number",
            "StatusCause.response.status.details.causes.reason",
            "v1.CauseType",
        ),
        (
            {"status": {"details": {"causes": {}}}},
            "object",
            "StatusDetails.response.status.details.causes",
            "[]v1.StatusCause",
        ),
        ({"warnings": "w"}, "string", "AdmissionResponse.response.warnings", "[]string"),
        ({"warnings": [1]}, "number", "AdmissionResponse.response.warnings", "string"),
        ({"auditAnnotations": {"a": 1}}, "number", "AdmissionResponse.response.auditAnnotations", "string"),
        ({"auditAnnotations": []}, "array", "AdmissionResponse.response.auditAnnotations", "map[string]string"),
        ({"patch": 5}, "number", "AdmissionResponse.response.patch", "[]uint8"),
        ({"patch": [300]}, "number 300", "AdmissionResponse.response.patch", "uint8"),
        ({"patchType": 5}, "number", "AdmissionResponse.response.patchType", "v1.PatchType"),
    ],
    ids=str,
)
def test_a_wrong_type_is_an_error(response, found, field, go):
    """A member of the wrong JSON type is an error of the call, in Go's words."""
    assert said(body(response)) == STRUCT.format(found, field, go)


def test_the_echoed_request_is_read_too():
    """An error in the request that an answer repeats is an error of the answer."""
    words = STRUCT.format("number", "AdmissionRequest.request.uid", "types.UID")
    assert said(body({}, request={"uid": 5})) == words


@pytest.mark.parametrize("patch", ["!!!", "QQ", "QQ=", "Q===", "=", "QQ==QQ=="])
def test_what_is_no_base64(patch):
    """A patch must be base64 as Go has it, padding and all."""
    assert said(body({"patch": patch, "patchType": "JSONPatch"})).startswith(CALL + "illegal base64 data")


@pytest.mark.parametrize(
    "content",
    [b"{", b'{"a":}', b"{} x", b"<html></html>", b"oh no", b"[]", b'"x"', b"NaN", b'{"a": Infinity}', b'{"kind": 5}'],
    ids=repr,
)
def test_what_is_no_review(content):
    """What is no JSON object is an error of the call."""
    assert said(content).startswith(CALL + "couldn't get version/kind; json parse error: ")


def test_nothing():
    """An empty body, and ``null``, are different."""
    assert said(b"") == CALL + "0-length response"
    assert said(b"null") == RESPONSE + "webhook response was absent"


def test_nesting_is_bounded():
    """What nests deeper than our own limit is an error, and never ends the process."""
    assert answer(body({"allowed": True, "x": json.loads("[" * 200 + "]" * 200)})).allowed
    for depth in (257, 10_001, 1_000_000):
        content = body({"x": "here"}).replace(b'"here"', b"[" * depth + b"]" * depth)
        assert "exceeded max depth" in said(content)


@pytest.mark.property
@given(
    st.one_of(
        st.binary(max_size=300),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["uid", "allowed", "status", "patch", "patchType", "warnings", "code", "details"]),
                    inner,
                    max_size=5,
                )
            ),
            max_leaves=8,
        ).map(lambda response: json.dumps({"response": response}).encode()),
    ),
    st.sampled_from(API_VERSIONS),
    st.booleans(),
)
def test_any_bytes_are_an_answer_or_an_error(content, api_version, mutating):
    """Whatever a webhook sends is an answer or an AnswerError, which is never long."""
    try:
        read_answer(content, uid="", api_version=api_version, mutating=mutating)
    except AnswerError as error:
        length = len(str(error))
    else:
        length = 0
    assert length < 1000
