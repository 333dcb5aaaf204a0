"""The document of a policy without inputs: everything but the uid, to the byte where nobody changed it."""

import json
import re

import pytest

from gateway.documents import Documents
from gateway.review import decode
from tests.traffic import recordings
from tests.world import request


@pytest.mark.parametrize("traffic", recordings(), ids=lambda each: each.name)
def test_a_recorded_request_is_its_own_document_but_for_the_uid(traffic):
    """Every top-level member, unknown ones included, in order and to the byte."""
    document = Documents(decode(traffic.body)).of(None, changed=False)
    expected = json.loads(traffic.body)["request"]
    del expected["uid"]
    assert json.loads(document.content) == expected
    assert list(json.loads(document.content)) == list(expected)
    without_uid = re.sub(rb'"uid":"[^"]*",', b"", traffic.body, count=1)
    assert document.content in without_uid


def test_two_requests_that_differ_in_their_uid_have_one_document():
    """kube-apiserver makes a new uid for every call."""
    one, two = (Documents(request(uid=uid)).of(None, changed=False) for uid in ("u1", "u2"))
    assert (one.content, one.digest) == (two.content, two.digest)


@pytest.mark.parametrize("member", ["name", "operation", "userInfo", "options", "someday"])
def test_every_other_member_makes_another_document(member):
    """A field that was sent can matter."""
    values = {"operation": "UPDATE"}
    plain = Documents(request()).of(None, changed=False)
    other = Documents(request(**{member: values.get(member, {"username": "x"} if member == "userInfo" else "x")}))
    assert other.of(None, changed=False).digest != plain.digest


def test_a_changed_object_stands_where_the_object_stood():
    """The order of members stays."""
    on = request()
    changed = {"metadata": {"name": "p", "labels": {"a": "<é>"}}}
    document = json.loads(Documents(on).of(changed, changed=True).content)
    assert document["object"] == changed
    assert list(document) == [name for name in on.members if name != "uid"]


def test_policies_share_one_document_while_the_object_stays():
    """It is built once."""
    documents = Documents(request())
    changed = {"metadata": {}}
    assert documents.of(None, changed=False) is documents.of(None, changed=False)
    assert documents.of(changed, changed=True) is documents.of(changed, changed=True)
    assert documents.of(None, changed=False) is not documents.of(changed, changed=True)
