"""A Request: the document from kube-apiserver, typed and lazy."""

import json
from dataclasses import dataclass
from typing import Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import GroupVersionKind, GroupVersionResource, InvalidDocumentError, Request, UserInfo
from tests.traffic import recordings

BODIES = {each.name: request for each in recordings() if (request := json.loads(each.body).get("request")) is not None}


@pytest.mark.parametrize("name", BODIES)
def test_a_recorded_request_reads_as_it_was_sent(name):
    """Each member of a real AdmissionRequest has its type; missing and null members are None."""
    sent = BODIES[name]
    request = Request(json.dumps(sent).encode(), uid=sent["uid"])
    assert request.document == sent
    assert request.uid == sent["uid"]
    plain = {
        "operation": request.operation,
        "name": request.name,
        "namespace": request.namespace,
        "subResource": request.sub_resource,
        "requestSubResource": request.request_sub_resource,
        "dryRun": request.dry_run,
        "object": request.object,
        "oldObject": request.old_object,
        "options": request.options,
        "namespaceObject": request.namespace_object,
    }
    assert plain == {member: sent.get(member) for member in plain}
    assert request.kind == GroupVersionKind(**sent["kind"])
    assert request.request_kind == GroupVersionKind(**sent["requestKind"])
    assert request.resource == GroupVersionResource(**sent["resource"])
    assert request.request_resource == GroupVersionResource(**sent["requestResource"])
    assert request.user_info.username == sent["userInfo"].get("username")
    assert list(request.user_info.groups or ()) == sent["userInfo"].get("groups", [])


def test_an_empty_document_has_nothing():
    """In an empty document every member is None."""
    request = Request(b"{}")
    members = [name for name, value in vars(Request).items() if isinstance(value, property)]
    assert {name: getattr(request, name) for name in members} == dict.fromkeys(members) | {"document": {}}


def test_a_part_of_a_member_reads_as_far_as_it_was_granted():
    """Fields that were not granted are empty, not an error."""
    request = Request(b'{"userInfo":{"groups":["a"]},"kind":{"kind":"Pod"}}')
    assert request.user_info == UserInfo(groups=("a",))
    assert request.kind == GroupVersionKind(kind="Pod")


def test_a_member_is_parsed_once():
    """A member is parsed once, so a policy's changes of it remain."""
    request = Request(b'{"object":{"a":1}}')
    request.object["b"] = 2
    assert request.object == {"a": 1, "b": 2}
    assert request.document is request.document


def test_nothing_is_parsed_that_is_not_read():
    """An unreadable member is an error only when it is read."""
    request = Request(b'{"operation":"CREATE","object":{"a":"\xff"},"kind":7}')
    assert request.operation == "CREATE"
    for member in ("object", "kind", "document"):
        with pytest.raises(InvalidDocumentError, match="document"):
            getattr(request, member)


def test_the_last_of_duplicate_members_wins():
    """Of duplicate members the last one counts, as in kube-apiserver."""
    assert Request(b'{"name":"a","name":"b"}').name == "b"


def test_a_representation_shows_no_content():
    """The repr of a request has no content."""
    assert "hunter2" not in repr(Request(b'{"object":{"data":"hunter2"}}', uid="u"))


@pytest.mark.property
@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,0123456789.eE-+ntrufalsx\\ "').map(str.encode))
def test_any_bytes_are_read_or_rejected(raw):
    """Any bytes: a document, or InvalidDocumentError, and no other exception."""
    try:
        request = Request(raw)
        for name, value in vars(Request).items():
            if isinstance(value, property):
                getattr(request, name)
    except InvalidDocumentError:
        return
    assert isinstance(json.loads(raw), dict)


class _Spec(msgspec.Struct):
    replicas: int
    paused: bool = False


class _Deployment(msgspec.Struct):
    spec: _Spec


@dataclass
class _Class:
    spec: dict[str, int]


class _Typed(TypedDict):
    spec: dict[str, int]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [(_Deployment, _Deployment(_Spec(3))), (_Class, _Class({"replicas": 3})), (_Typed, {"spec": {"replicas": 3}})],
)
def test_the_object_in_a_type_of_the_authors(shape, expected):
    """``object_as`` takes a Struct, a dataclass or a TypedDict, and returns None without an object."""
    whole = {"kind": "Deployment", "spec": {"replicas": 3}}
    request = Request(json.dumps({"object": whole, "oldObject": None}).encode())
    found = request.object_as(shape)
    assert found in (expected, whole)
    assert request.old_object_as(shape) is None
    assert Request(json.dumps({"oldObject": whole}).encode()).old_object_as(shape) is not None
    assert Request(b"{}").object_as(shape) is None


@pytest.mark.parametrize(
    ("whole", "message"),
    [
        (
            {"spec": {"replicas": "secret"}},
            "object is no _Deployment: Expected `int`, got `str` at `$.spec.replicas`",
        ),
        ({"spec": {}}, "Object missing required field `replicas`"),
        ({"secret": 1}, "Object missing required field `spec`"),
    ],
)
def test_an_object_of_another_shape_is_reported_without_its_values(whole, message):
    """The error names the place, never the value, which may be secret."""
    with pytest.raises(InvalidDocumentError) as raised:
        Request(json.dumps({"object": whole}).encode()).object_as(_Deployment)
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_value_that_a_type_forbids_is_not_shown():
    """The error has no value of an enumeration either."""
    with pytest.raises(InvalidDocumentError) as raised:
        Request(b'{"object":{"data":"hunter2"}}').object_as(dict[str, Literal["a"]])
    assert "hunter2" not in str(raised.value)
    assert "a value that it does not take" in str(raised.value)


def test_an_unsupported_type_is_a_type_error():
    """An unsupported type is a TypeError."""
    with pytest.raises(TypeError):
        Request(b'{"object":{}}').object_as(dict[str, object] | list[int] | set[int])
