"""Writes: the default ones, what protects them, and which claims are beyond a grant."""

import pytest

from gateway.scopes.pointer import parse_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes


def places(*pointers: str) -> PointerSet:
    """A set, as it is written."""
    return PointerSet(map(parse_pointer, pointers))


@pytest.mark.parametrize("subresource", ["", "status", "scale"])
def test_which_object_it_is_and_who_keeps_it_is_protected(subresource):
    """Of a policy without ``writes``, in every request; labels and spec are not."""
    protected = Writes.DEFAULT.protected(subresource)
    assert protected is not None
    for name in ("name", "generateName", "namespace", "uid", "resourceVersion", "managedFields", "finalizers"):
        assert protected.covers(("metadata", name))
    assert protected.covers(("metadata", "ownerReferences", "0", "uid"))
    assert protected.covers(("apiVersion",))
    assert protected.covers(("kind",))
    assert not protected.covers(("metadata", "labels"))
    assert not protected.covers(("metadata",))
    assert not protected.covers(("spec",))


def test_the_status_is_protected_unless_it_is_what_the_request_is_about():
    """A controller writes the status through the subresource."""
    assert [
        protected is not None and protected.covers(("status", "phase"))
        for protected in map(Writes.DEFAULT.protected, ["", "scale", "status"])
    ] == [True, True, False]


def test_nothing_is_protected_from_a_native_webhook_or_from_what_is_granted_by_name():
    """An operator who names a place means it."""
    assert Writes.EVERYTHING.protected("") is None
    assert Writes(granted=places("/metadata/finalizers")).protected("") is None


@pytest.mark.parametrize(
    ("writes", "claim", "beyond"),
    [
        (Writes(granted=places("/metadata/labels")), places("/metadata/labels/a"), ()),
        (Writes(granted=places("/metadata/labels")), places("/metadata", "/spec"), ("/metadata", "/spec")),
        (Writes(granted=places("/metadata/labels")), None, ("everything",)),
        (Writes(granted=places()), places(), ()),
        (Writes.DEFAULT, None, ()),
        (Writes.DEFAULT, places("/metadata", "/status"), ()),
        (Writes.DEFAULT, places("/metadata/name", "/metadata/labels"), ("/metadata/name",)),
        (Writes.EVERYTHING, places("/metadata/name"), ()),
        (Writes.EVERYTHING, None, ()),
    ],
)
def test_a_claim_beyond_the_grant_is_named(writes, claim, beyond):
    """Where nothing was granted by name, a claim is beyond that only if all of it is protected."""
    assert writes.beyond(claim) == beyond


def test_a_claim_narrows_and_protects_as_before():
    """What is claimed is added to what is kept; claiming everything adds nothing."""
    narrowed = Writes.DEFAULT.narrowed_to(places("/metadata"))
    assert narrowed.narrowed == places("/metadata")
    assert narrowed.protected("") == Writes.DEFAULT.protected("")
    assert Writes.DEFAULT.narrowed_to(None) is Writes.DEFAULT
