"""namespaceObject: whose it is, what of it is known, and when there is none."""

import json

import pytest

from gateway.documents.documents import DocumentBuilder
from gateway.review.request import decode
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import ANY, PointerSet
from tests.traffic import recording
from tests.world import request

LABELS = {"team": "a", "env": "prod"}


def shown(on, *pointers, labels=LABELS):
    """The decoded document that shows these places, about an object as it came."""
    return json.loads(
        DocumentBuilder(on).of(Inputs(places=PointerSet(pointers)), None, changed=False, namespace=labels).content
    )


def test_it_is_a_namespace_of_name_and_labels_and_comes_last():
    """The labels sorted, in Kubernetes' own shape."""
    document = shown(request(), ("object",), ("namespaceObject",))
    assert list(document)[-1] == "namespaceObject"
    assert json.dumps(document["namespaceObject"]) == json.dumps(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t", "labels": {"env": "prod", "team": "a"}}}
    )


def test_only_what_is_declared_of_it_is_shown():
    """One label, and the containers on the way."""
    document = shown(request(), ("namespaceObject", "metadata", "labels", "env"))
    assert document["namespaceObject"] == {"metadata": {"labels": {"env": "prod"}}}


def test_labels_in_another_order_are_the_same_document():
    """Replicas that saw them in another order make the same document."""
    documents = DocumentBuilder(request())
    inputs = Inputs(places=PointerSet([("namespaceObject", "metadata")]))
    first = documents.of(inputs, None, changed=False, namespace=LABELS)
    assert documents.of(inputs, None, changed=False, namespace=dict(reversed(LABELS.items()))) is first
    assert documents.of(inputs, None, changed=False, namespace={"team": "b"}) is not first


@pytest.mark.parametrize("name", ["clusterrole-create.0m", "ns-create.0m", "ns-delete.0m"])
def test_what_is_in_no_namespace_has_none(name):
    """ "The value is null for cluster-scoped resources", and for Namespaces, which claim to be in themselves."""
    on = decode(recording(name).body)
    assert DocumentBuilder(on).namespace == ""
    assert "namespaceObject" not in shown(on, ("namespaceObject",))


def test_what_is_in_a_namespace_offers_it():
    """Its name is what to look up."""
    assert DocumentBuilder(decode(recording("pod-create.0m").body)).namespace == "t"


def test_an_unknown_namespace_does_not_appear():
    """The engine decides what that means."""
    assert "namespaceObject" not in shown(request(), ("namespaceObject",), labels=None)


def test_no_labels_are_no_member():
    """As the API server writes a Namespace without any."""
    document = shown(request(), ("namespaceObject", "metadata"), labels={})
    assert document["namespaceObject"] == {"metadata": {"name": "t"}}


@pytest.mark.parametrize("inputs", [Inputs.EVERYTHING, Inputs(places=PointerSet([("object",)]))])
def test_it_is_not_shown_unasked(inputs):
    """It is no member of the request."""
    documents = DocumentBuilder(request())
    assert b"prod" not in documents.of(inputs, None, changed=False, namespace=LABELS).content


def test_a_member_of_the_request_by_that_name_does_not_pass_for_it():
    """Should Kubernetes ever send one, it is a member like any other without inputs; declared, ours is meant."""
    on = request(namespaceObject={"metadata": {"name": "theirs"}})
    for pointer in (("namespaceObject",), (ANY,)):
        content = (
            DocumentBuilder(on).of(Inputs(places=PointerSet([pointer])), None, changed=False, namespace=LABELS).content
        )
        assert content.count(b'"namespaceObject"') == 1
        assert json.loads(content)["namespaceObject"]["metadata"]["name"] == "t"
    assert b"theirs" in DocumentBuilder(on).of(Inputs.EVERYTHING, None, changed=False).content
