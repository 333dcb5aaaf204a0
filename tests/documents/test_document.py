"""The document of a policy without inputs, to the byte if unchanged; and which policies share one."""

import json
import re

import pytest

from gateway.documents.documents import DocumentBuilder
from gateway.review.request import decode
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from tests.traffic import recordings
from tests.world import request

ALL = Inputs.EVERYTHING
LABELS = Inputs(places=PointerSet([("object", "metadata", "labels")]))
USER = Inputs(places=PointerSet([("userInfo", "username")]))


@pytest.mark.parametrize("traffic", recordings(), ids=lambda each: each.name)
def test_a_recorded_request_is_its_own_document_but_for_the_uid(traffic):
    """Every top-level member, unknown ones included, in order and to the byte."""
    document = DocumentBuilder(decode(traffic.body)).of(ALL, None, changed=False)
    expected = json.loads(traffic.body)["request"]
    del expected["uid"]
    assert json.loads(document.content) == expected
    assert list(json.loads(document.content)) == list(expected)
    without_uid = re.sub(rb'"uid":"[^"]*",', b"", traffic.body, count=1)
    assert document.content in without_uid


def test_two_requests_that_differ_in_their_uid_have_one_document():
    """kube-apiserver makes a new uid for every call."""
    one, two = (DocumentBuilder(request(uid=uid)).of(ALL, None, changed=False) for uid in ("u1", "u2"))
    assert (one.content, one.digest) == (two.content, two.digest)


@pytest.mark.parametrize("member", ["name", "operation", "userInfo", "options", "someday", "namespaceObject"])
def test_every_other_member_makes_another_document(member):
    """A field that was sent can matter."""
    values = {"operation": "UPDATE"}
    plain = DocumentBuilder(request()).of(ALL, None, changed=False)
    other = DocumentBuilder(request(**{member: values.get(member, {"username": "x"} if member == "userInfo" else "x")}))
    assert other.of(ALL, None, changed=False).digest != plain.digest


def test_a_changed_object_stands_where_the_object_stood():
    """The order of members stays."""
    on = request()
    changed = {"metadata": {"name": "p", "labels": {"a": "<é>"}}}
    document = json.loads(DocumentBuilder(on).of(ALL, changed, changed=True).content)
    assert document["object"] == changed
    assert list(document) == [name for name in on.members if name != "uid"]


def test_policies_share_one_document_while_the_object_stays():
    """It is built once, for all policies with equal inputs."""
    documents = DocumentBuilder(request())
    changed = {"metadata": {}}
    equal = Inputs(places=PointerSet([("object", "metadata", "labels", "x"), ("object", "metadata", "labels")]))
    for inputs, again in ((ALL, Inputs()), (LABELS, equal)):
        before = documents.of(inputs, None, changed=False)
        assert documents.of(again, None, changed=False) is before
        after = documents.of(inputs, changed, changed=True)
        assert documents.of(again, changed, changed=True) is after is not before


def test_a_document_that_does_not_show_the_object_stays_when_it_changes():
    """Nothing is encoded, hashed or called again; so too where the inputs reach into it, but not to the change."""
    documents = DocumentBuilder(request(userInfo={"username": "u"}))
    for inputs in (USER, LABELS, Inputs(places=PointerSet())):
        before = documents.of(inputs, None, changed=False)
        after = documents.of(inputs, {"metadata": {"labels": {}, "annotations": {}}}, changed=True)
        assert after is before


def test_an_object_changed_back_is_the_api_server_s_own_bytes_again():
    """Then it is the same question as at first."""
    documents = DocumentBuilder(request({"metadata": {"name": "<p>"}}))
    first = documents.of(ALL, None, changed=False)
    assert documents.of(ALL, {"metadata": {"name": "q"}}, changed=True).digest != first.digest
    assert documents.of(ALL, None, changed=False) == first
