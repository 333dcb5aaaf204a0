"""The uid of a review that is too large: found where it stands, and nowhere else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.serving.limits import Limits
from gateway.serving.oversized import envelope

V1 = "admission.k8s.io/v1"
PREFIX = Limits().uid_prefix_bytes


def known(prefix):
    """What an answer must repeat."""
    found = envelope(prefix)
    return None if found is None else (found.uid, found.api_version)


def test_every_recorded_request_is_recognised_by_its_beginning(recordings):
    """The first 4 KB of any request of a real API server have its uid and version; so do its first 200 bytes."""
    for recording in recordings.values():
        review = json.loads(recording["body"])
        expected = (review["request"]["uid"], review["apiVersion"])
        assert known(recording["body"].encode()[:PREFIX]) == expected
        assert known(recording["body"].encode()[:200]) == expected


def test_what_a_recorded_request_is_about_stands_in_its_beginning(recordings):
    """Of any request of a real API server: who does what to which object; the objects themselves may be cut."""
    for recording in recordings.values():
        review = json.loads(recording["body"])["request"]
        request = envelope(recording["body"].encode()[:PREFIX]).request
        assert request is not None
        assert (request.uid, request.operation) == (review["uid"], review["operation"])
        assert (request.name, request.namespace) == (review.get("name", ""), review.get("namespace", ""))
        assert request.resource.resource == review["resource"]["resource"]
        assert request.user_info.username == review["userInfo"]["username"]


def test_of_what_is_not_known_there_is_no_request():
    """A uid is enough for an answer, and not for a record: without a kind, or another uid than that of the answer."""
    text = '{"kind":"AdmissionReview","request":{"uid":"a","resource":{"version":"v1","resource":"pods"}'
    whole = text + ',"kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","uid":"b","object":{"x":[1,'
    assert envelope(text.encode()).request is None
    assert envelope(whole.encode()).request.uid == "a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"a"', "v1beta1"),
        (
            ' \r\n\t{ "kind" : "AdmissionReview" , "apiVersion" : "admission.k8s.io/v1" , "request" : { "uid" : "a"',
            "v1",
        ),
        ('{"kind":"AdmissionReview","request":{"uid":"a"', "v1"),
        ('{"apiVersion":"admission.k8s.io/v1","request":{"uid":"a"', "v1"),
        ('{"kind":"AdmissionReview","x":{"request":{"uid":"b"}},"request":{"uid":"a"', "v1"),
        ('{"kind":"AdmissionReview","request":{"object":{"metadata":{"uid":"b"},"l":[{"uid":"c"}]},"uid":"a"', "v1"),
        ('{"kind":"AdmissionReview","request":{"note":"\\"uid\\":\\"b\\"","uid":"a","object":', "v1"),
        ('{"kind":"AdmissionReview","request":{"uid":"a","object":"\u00e4', "v1"),
    ],
)
def test_members_may_stand_in_any_order(text, expected):
    """Order and blanks mean nothing, and a uid inside another value is not the request's."""
    assert known(text.encode()) == ("a", f"admission.k8s.io/{expected}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "not JSON",
        "{[]:0}",
        '{7:0,"kind":"AdmissionReview","request":{"uid":"a"}}',
        '{"kind":"AdmissionReview"}',
        '{"request":{"uid":"a"}}',
        '{"kind":"Pod","request":{"uid":"a"}}',
        '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2","request":{"uid":"a"}}',
        '{"kind":"AdmissionReview","apiVersion":["admission.k8s.io/v1"],"request":{"uid":"a"}}',
        '{"kind":"AdmissionReview","request":null}',
        '{"kind":"AdmissionReview","request":[{"uid":"a"}]}',
        '{"kind":"AdmissionReview","request":{"uid":7}}',
        '{"kind":"AdmissionReview","request":{"uid":""}}',
        '{"kind":"AdmissionReview","request":{"uid":"a',
        '{"kind":"AdmissionReview","request":{"uid":"\\ud800"}}',
        '{"kind":"AdmissionReview","request":{"uid":"a\\nb"}}',
        '{"kind":"AdmissionReview","request":{"uid":"' + "a" * 129 + '"}}',
        '{"kind":"AdmissionReview","request":{"object":{"uid":"a"}}}',
        '{"kind":"AdmissionReview","request":{"object":{"uid":"a"},"oldObject":{',
        '{"kind":"AdmissionReview","x":' + "[" * 4000,
        '{"kind":"AdmissionReview","x":' + "9" * 5000,
    ],
)
def test_an_unknown_version_is_not_guessed(text):
    """Another kind or version, no uid, one that cannot be repeated, or a cut before it: no envelope."""
    assert envelope(text.encode()) is None


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=10,
)


@pytest.mark.property
@given(data=st.data())
def test_a_prefix_has_the_uid_of_the_whole(data):
    """For any review, cut anywhere: the right envelope or none, and the right one from where the uid has ended."""
    uid = data.draw(st.uuids()).hex
    before = data.draw(st.dictionaries(st.text().filter(lambda name: name != "uid"), VALUES, max_size=3))
    request = {**before, "uid": uid, "object": data.draw(VALUES)}
    review = {"apiVersion": V1, "x": data.draw(VALUES), "kind": "AdmissionReview", "request": request}
    content = json.dumps(review, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "replace")
    end = content.rindex(f'"uid": "{uid}"'.encode()) + len(f'"uid": "{uid}"')
    cut = data.draw(st.integers(0, len(content)))
    assert known(content[:cut]) == ((uid, V1) if cut >= end else None)


@pytest.mark.property
@given(noise=st.one_of(st.binary(max_size=300), st.text(alphabet='{}[]":,\\ u0a1', max_size=60).map(str.encode)))
def test_whatever_it_begins_with_it_never_raises(noise):
    """Any bytes are answered: an envelope needs a kind or version, so noise has none."""
    assert envelope(noise) is None
