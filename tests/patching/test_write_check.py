"""What a policy may write: judged on what differs, place by place."""

import pytest
from hypothesis import given

from gateway.patching.difference import difference
from gateway.patching.parsing import parse_pointer
from gateway.patching.write_check import out_of_scope
from gateway.scopes.pointer import format_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import IDENTITY, STATUS, Writes
from tests.patching.values import SEEDS, SOME, edited, found, objects, places, strictly_equal

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}, "ownerReferences": [{"name": "rs"}]},
    "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}], "nodeName": "n"},
    "status": {"phase": "Pending"},
}


def granted(*pointers):
    """Writes that grant these places."""
    return Writes(granted=PointerSet([parse_pointer(pointer) for pointer in pointers]))


def changed(*path, to, document=POD):
    """The document with another value (or none: ...) at a place."""
    *way, last = path
    copy = dict(document) if isinstance(document, dict) else list(document)
    if way:
        copy[way[0]] = changed(*path[1:], to=to, document=document[way[0]])
    elif to is ...:
        del copy[last]
    elif isinstance(copy, list) and isinstance(last, str):
        copy.insert(int(last), to)
    else:
        copy[last] = to
    return copy


def judged(after, writes, before=POD, subresource=""):
    """Why a change may not be made, or None."""
    return out_of_scope(before, after, difference(before, after), writes, subresource)


BARE = {"metadata": {"name": "n"}, "a": {}, "l": []}
ALLOWED = {
    "the place itself": (POD, changed("metadata", "labels", to={"x": "y"}), ["/metadata/labels"]),
    "below it": (POD, changed("metadata", "labels", "app", to="x"), ["/metadata/labels"]),
    "every element's member": (POD, changed("spec", "containers", 1, "image", to="x"), ["/spec/containers/*/image"]),
    "an inserted element": (POD, changed("spec", "containers", "0", to={"name": "c"}), ["/spec/containers/*"]),
    "a removed element": (POD, changed("spec", "containers", 0, to=...), ["/spec/containers"]),
    "one element": (POD, changed("spec", "containers", 0, "name", to="x"), ["/spec/containers/0"]),
    "a container created on the way": (
        BARE,
        changed("metadata", "labels", to={"team": "a"}, document=BARE),
        ["/metadata/labels/team"],
    ),
    "and removed again": (
        changed("metadata", "labels", to={"team": "a"}, document=BARE),
        BARE,
        ["/metadata/labels/team"],
    ),
    "an empty container on the way": (BARE, changed("b", to={}, document=BARE), ["/b/c"]),
    "an empty array on the way": (BARE, changed("b", to=[], document=BARE), ["/b/*"]),
    "an array with elements": (BARE, changed("b", to=[1, {}], document=BARE), ["/b/*"]),
    "a container of another kind": (BARE, changed("a", to=[], document=BARE), ["/a/*"]),
    "a member that is called like an index": (BARE, changed("a", "0", to=1, document=BARE), ["/a/0"]),
    "everything": (POD, {}, [""]),
    "the same value": (POD, changed("spec", "nodeName", to="n"), ["/metadata/labels"]),
}


@pytest.mark.parametrize(("before", "after", "writes"), ALLOWED.values(), ids=ALLOWED)
def test_what_is_granted_may_change(before, after, writes):
    """A change whose every value lies in a granted place is in scope."""
    assert judged(after, granted(*writes), before) is None


REFUSED = {
    "elsewhere": (POD, changed("spec", "nodeName", to="x"), ["/metadata/labels"], "/spec/nodeName"),
    "beside it": (
        POD,
        changed("metadata", "annotations", to={"x": "y"}),
        ["/metadata/labels"],
        "/metadata/annotations",
    ),
    "another element": (
        POD,
        changed("spec", "containers", 1, "image", to="x"),
        ["/spec/containers/0"],
        "/spec/containers/1/image",
    ),
    "an element inserted where one is granted": (
        POD,
        changed("spec", "containers", "0", to={"name": "c"}),
        ["/spec/containers/0"],
        "/spec/containers/0",
    ),
    "an element of which a part is granted": (
        POD,
        changed("spec", "containers", "0", to={"image": "c"}),
        ["/spec/containers/*/image"],
        "/spec/containers/0",
    ),
    "an element removed": (
        POD,
        changed("spec", "containers", 1, to=...),
        ["/spec/containers/*/image"],
        "/spec/containers/1",
    ),
    "a container with something else in it": (
        BARE,
        changed("metadata", "labels", to={"team": "a", "x": "y"}, document=BARE),
        ["/metadata/labels/team"],
        "/metadata/labels/x",
    ),
    "a container removed with something else in it": (
        POD,
        changed("metadata", "labels", to=...),
        ["/metadata/labels/team"],
        "/metadata/labels/app",
    ),
    "a scalar above it": (BARE, changed("b", to=1, document=BARE), ["/b/c"], "/b"),
    "an array above a member": (BARE, changed("b", to=[], document=BARE), ["/b/c"], "/b"),
    "elements of an array with a part granted": (
        BARE,
        changed("b", to=[{"c": 1}], document=BARE),
        ["/b/*/c"],
        "/b",
    ),
    "anything": (POD, changed("spec", "nodeName", to="x"), [], "/spec/nodeName"),
}


@pytest.mark.parametrize(("before", "after", "writes", "place"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_granted_may_not_change(before, after, writes, place):
    """A change outside is refused with its place and with what is granted."""
    assert judged(after, granted(*writes), before) == (
        f"the policy may not change {place}: writes grants {writes[0] if writes else 'nothing'}; "
        "if it should, add the place to its writes, else correct its worker"
    )


@pytest.mark.parametrize("seconds", [(2, 3), (2, 1)], ids=["as if the first had gone", "as if they were swapped"])
def test_a_member_of_each_element_may_change_whatever_it_becomes(seconds):
    """The difference takes elements that came to equal others for moved ones; that is its guess, not the policy's."""
    before, after = (
        {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "seconds": n} for n in each]}
        for each in ((1, 2), seconds)
    )
    assert any(each.op == "remove" for each in difference(before, after))
    assert judged(after, granted("/tolerations/*/seconds"), before) is None
    assert judged(after, granted("/tolerations/*/key"), before) is not None


def test_the_workers_claim_narrows():
    """What a worker does not claim to write it may not write, though it is granted."""
    writes = granted("/metadata").narrowed_to(PointerSet([("metadata", "labels")]))
    assert judged(changed("metadata", "labels", "app", to="x"), writes) is None
    assert judged(changed("metadata", "annotations", to={}), writes) == (
        "the policy may not change /metadata/annotations: its worker claims to write /metadata/labels; "
        "the worker must claim what it changes, or leave it alone"
    )


PROTECTED = {
    "/kind": changed("kind", to="x"),
    "/metadata/name": changed("metadata", "name", to="x"),
    "/metadata/generateName": changed("metadata", "generateName", to="x"),
    "/metadata/ownerReferences": changed("metadata", "ownerReferences", to=...),
    "/metadata/ownerReferences/0": changed("metadata", "ownerReferences", "0", to={"name": "x"}),
    "/metadata/ownerReferences/0/name": changed("metadata", "ownerReferences", 0, "name", to="x"),
    "/metadata/finalizers": changed("metadata", "finalizers", to=[]),
    "/metadata/generation": changed("metadata", "generation", to=7),
    "/metadata/creationTimestamp": changed("metadata", "creationTimestamp", to="2026-01-01T00:00:00Z"),
    "/metadata/deletionTimestamp": changed("metadata", "deletionTimestamp", to="2026-01-01T00:00:00Z"),
    "/metadata/deletionGracePeriodSeconds": changed("metadata", "deletionGracePeriodSeconds", to=0),
    "/metadata/selfLink": changed("metadata", "selfLink", to="/x"),
    "/status/phase": changed("status", "phase", to="x"),
    "/status": changed("status", to=...),
}


@pytest.mark.parametrize(("place", "after"), PROTECTED.items(), ids=PROTECTED)
def test_the_default_protects_identity_and_status(place, after):
    """Without ``writes`` no operation touches a protected place, and the message says how to allow it."""
    said = judged(after, Writes.DEFAULT)
    assert said is not None
    assert said.startswith(f"the policy may not change {place}, which is protected")
    assert "writes" in said
    assert judged(after, Writes.EVERYTHING) is None
    assert judged(after, granted("/kind", "/metadata", "/status")) is None


def test_a_container_is_protected_as_far_as_it_holds_what_is():
    """metadata may come as a whole without a name in it, and may not go with one."""
    assert judged({"metadata": {"labels": {"a": "b"}}}, Writes.DEFAULT, {}) is None
    assert "/metadata/name" in judged({"metadata": {"name": "x"}}, Writes.DEFAULT, {})
    assert "/metadata/name" in judged(changed("metadata", to=...), Writes.DEFAULT)
    assert judged({}, Writes.DEFAULT, {"metadata": {"labels": {}}}) is None


def test_null_is_no_value_of_a_protected_place():
    """Go's types write null for a time that is not set: that changes nothing. A value that is replaced by it does."""
    assert judged(changed("metadata", "creationTimestamp", to=None), Writes.DEFAULT) is None
    assert judged({"metadata": {"creationTimestamp": None}}, Writes.DEFAULT, {}) is None
    assert "/metadata/name" in judged(changed("metadata", "name", to=None), Writes.DEFAULT)


def test_the_subresource_status_is_the_status():
    """A request for the subresource status may have its status changed, and its name no more than others."""
    assert judged(changed("status", "phase", to="x"), Writes.DEFAULT, subresource="status") is None
    assert judged(changed("metadata", "name", to="x"), Writes.DEFAULT, subresource="status") is not None


def test_a_message_names_a_few_of_many_grants():
    """A message stays short, however much is granted."""
    said = judged(changed("spec", "nodeName", to="x"), granted(*[f"/metadata/labels/l{n:02}" for n in range(50)]))
    assert "/metadata/labels/l04 and 45 more; " in said


def leaves(value, at=()):
    """Every value that holds no other, by its place; empty containers are part of a way."""
    if isinstance(value, dict | list):
        children = value.items() if isinstance(value, dict) else enumerate(value)
        return {place: leaf for name, child in children for place, leaf in leaves(child, (*at, str(name))).items()}
    return {at: value}


@pytest.mark.property
@SOME
@given(objects(), SEEDS)
def test_what_is_not_granted_is_as_it_was(before, random):
    """After a change that is in scope every value outside of it is where it was, and no other has come."""
    after = edited(random, edited(random, before))
    pointers = random.sample(places(before) + places(after), k=min(3, len(places(before))))
    scope = PointerSet([tuple("*" if random.random() < 0.3 else token for token in pointer) for pointer in pointers])
    if judged(after, Writes(granted=scope), before) is None:
        one, other = (
            {place: leaf for place, leaf in leaves(each).items() if not scope.covers(place)} for each in (before, after)
        )
        assert one == other
    for pointer in scope.pointers:
        assert judged(after, Writes(granted=PointerSet([()])), before) is None, format_pointer(pointer)


@pytest.mark.property
@SOME
@given(objects(), SEEDS)
def test_the_default_lets_pass_what_leaves_identity_alone(before, random):
    """By default a change is in scope exactly if every protected place holds what it held, or nothing as before."""
    before = {"metadata": before, "kind": "K", **(before if random.random() < 0.3 else {})}
    after = edited(random, edited(random, before))
    one, other = (
        {at: found(each, at) for at in (*IDENTITY, (STATUS,)) if at in places(each) and found(each, at) is not None}
        for each in (before, after)
    )
    assert (judged(after, Writes.DEFAULT, before) is None) is strictly_equal(one, other)
