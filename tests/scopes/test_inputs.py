"""Inputs: what of each member is shown, and which claims are beyond a grant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import parse_pointer
from gateway.scopes.pointer_set import ANY, PointerSet

MEMBERS = ("uid", "kind", "dryRun", "operation", "object", "oldObject", "namespaceObject", "userInfo", "someday", ANY)
POINTERS = st.builds(
    lambda first, rest: (first, *rest),
    st.sampled_from(MEMBERS),
    st.lists(st.sampled_from(["a", "b", ANY]), max_size=3),
)
INPUTS = st.none() | st.lists(POINTERS, max_size=4)


def inputs(*pointers: str) -> Inputs:
    """Inputs, as they are written."""
    return Inputs(places=PointerSet(map(parse_pointer, pointers)))


def made(pointers) -> Inputs:
    """Inputs of drawn pointers; None: everything."""
    return Inputs.EVERYTHING if pointers is None else Inputs(places=PointerSet(pointers))


def shows(some: Inputs, pointer) -> bool:
    """Whether all of this place is shown."""
    shown = some.shown(pointer[0])
    return shown is not None and shown.covers(pointer[1:])


@pytest.mark.parametrize(
    "some", [Inputs.EVERYTHING, inputs(), inputs("/object"), inputs("/*"), inputs("/uid"), inputs("")]
)
def test_the_uid_is_never_shown_and_what_the_request_is_about_always(some):
    """Whatever the inputs are."""
    assert some.shown("uid") is None
    for member in ("kind", "resource", "subResource", "operation", "dryRun"):
        shown = some.shown(member)
        assert shown is not None
        assert shown.whole


def test_without_inputs_every_member_of_the_request_is_shown_and_no_namespace():
    """Unknown ones included; the Namespace is not in the request."""
    shown = Inputs.EVERYTHING.shown("someday")
    assert shown is not None
    assert shown.whole
    assert Inputs.EVERYTHING.object is None
    assert not Inputs.EVERYTHING.needs_namespace
    assert Inputs.EVERYTHING.pointers == ()


def test_the_object_s_places_are_seen_from_the_object():
    """As a patch's paths are."""
    assert inputs("/object/metadata/labels", "/userInfo").object == PointerSet([("metadata", "labels")])
    assert inputs("/object").object is None
    assert inputs("/userInfo").object == PointerSet()


def test_a_namespace_is_needed_only_where_it_is_declared():
    """It must be looked up."""
    assert inputs("/namespaceObject/metadata/labels").needs_namespace
    assert not inputs("/object/metadata", "/namespace").needs_namespace


@pytest.mark.parametrize(
    ("grant", "claim", "beyond"),
    [
        (inputs("/object/metadata"), inputs("/object/metadata/labels"), ()),
        (inputs("/object/metadata/labels"), inputs("/object/metadata"), ("/object/metadata",)),
        (inputs("/object/*/a"), inputs("/object/b/a", "/object/*/a/c"), ()),
        (inputs("/object/b/a"), inputs("/object/*/a"), ("/object/*/a",)),
        (inputs("/object"), Inputs.EVERYTHING, ("everything",)),
        (inputs("/*"), Inputs.EVERYTHING, ()),
        (inputs(), inputs(), ()),
        (inputs(), inputs("/operation", "/kind/group"), ()),
        (inputs(), inputs("/object/metadata/a~1b"), ("/object/metadata/a~1b",)),
        (Inputs.EVERYTHING, Inputs.EVERYTHING, ()),
        (Inputs.EVERYTHING, inputs("/object", "/someday/x"), ()),
        (Inputs.EVERYTHING, inputs("/namespaceObject/metadata"), ("/namespaceObject/metadata",)),
        (Inputs.EVERYTHING, inputs("/uid"), ("/uid",)),
        (Inputs.EVERYTHING, inputs("/*"), ("/*",)),
        (inputs("/*"), inputs("/uid", "/object"), ("/uid",)),
    ],
)
def test_a_claim_beyond_the_grant_is_named(grant, claim, beyond):
    """What is shown in any case is never beyond; uid is, and so is a Namespace that was not granted by name."""
    assert grant.beyond(claim) == beyond


@pytest.mark.property
@given(INPUTS, INPUTS, st.lists(POINTERS, min_size=1, max_size=8))
def test_a_claim_that_is_not_beyond_shows_nothing_that_is_not_granted(grant, claim, pointers):
    """For every place: what the claim shows, the grant shows, unless the claim is refused."""
    granted, claimed = made(grant), made(claim)
    if not granted.beyond(claimed):
        assert all(shows(granted, each) for each in pointers if shows(claimed, each))


@pytest.mark.property
@given(INPUTS)
def test_a_claim_equal_to_the_grant_is_within_it(pointers):
    """A grant is not beyond itself, except for the uid, which none can be granted."""
    assert all(each.startswith("/uid") for each in made(pointers).beyond(made(pointers)))


def test_equal_inputs_are_one_key():
    """However they were written."""
    one, other = inputs("/object/a", "/object/a/b"), inputs("/object/a")
    assert one == other
    assert {one: 1}[other] == 1
    assert one != Inputs.EVERYTHING != inputs()
