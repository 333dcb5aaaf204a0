"""Whose a review is, from its first bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.serving.tenants import UNKNOWN, tenant_of
from tests.serving.conftest import RECORDINGS


def bodies():
    for file in sorted(RECORDINGS.glob("*.json")):
        recorded = json.loads(file.read_text())
        if isinstance(recorded, dict) and isinstance(recorded.get("body"), str):
            yield file.name, recorded["body"]


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in bodies()])
def test_the_tenant_of_what_the_api_server_sends(body):
    """The namespace; the user for objects without one, and for namespaces."""
    request = json.loads(body).get("request") or {}
    namespace, user = request.get("namespace"), request.get("userInfo", {}).get("username")
    expected = UNKNOWN
    if namespace and request["resource"]["resource"] != "namespaces":
        expected = namespace.encode()
    elif user:
        expected = f"user {user}".encode()
    assert tenant_of(body.encode()) == expected


def test_an_author_cannot_choose_the_tenant():
    """Not by a name, nor by anything in the object."""
    request = {
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "Node"},
        "resource": {"group": "", "version": "v1", "resource": "nodes"},
        "name": 'x","namespace":"other',
        "operation": "CREATE",
        "userInfo": {"username": "eve"},
        "object": {"metadata": {"name": "x", "namespace": "other"}},
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    assert tenant_of(json.dumps(review, separators=(",", ":")).encode()) == b"user eve"


@given(st.binary(max_size=200))
def test_whatever_comes_has_a_tenant(body):
    """It never raises."""
    assert isinstance(tenant_of(body), bytes)
    assert isinstance(tenant_of(b'{"kind":"AdmissionReview",' + body + b',"operation":"' + body), bytes)


def test_a_name_that_does_not_end_soon_is_of_no_tenant():
    """A user whose name goes on would be a tenant of each of its objects."""
    request = {"uid": "1", "operation": "CREATE", "userInfo": {"username": "e" * 3000}, "object": {}}
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    assert tenant_of(json.dumps(review, separators=(",", ":")).encode()) == UNKNOWN
