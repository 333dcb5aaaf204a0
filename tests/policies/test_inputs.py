"""``inputs``: which pointers are a grant, which are errors, and in which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policies.decoding.field import Field
from gateway.policies.decoding.nodes import Node
from gateway.policies.errors import Place
from gateway.policies.fields.inputs import read_inputs
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import format_pointer, parse_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes

MEMBERS = (
    "dryRun, kind, name, namespace, namespaceObject, object, oldObject, operation, options, requestKind, "
    "requestResource, requestSubResource, resource, subResource, userInfo"
)


@pytest.mark.parametrize(
    "pointer",
    [
        "/object",
        "/oldObject/spec/containers/*/image",
        "/options/dryRun",
        "/object/a~1b/~0/*/",
        "/kind/group",
        "/requestResource/resource",
        "/kind/*",
        "/userInfo/groups/0",
        "/userInfo/extra/example.com~1scopes/*",
        "/userInfo/*/0",
        "/name",
        "/namespaceObject",
        "/namespaceObject/*/labels",
        "/namespaceObject/metadata/labels/tier",
    ],
)
def test_granted(one_policy, pointer):
    """What a request can have may be granted."""
    policy, loaded = one_policy({"inputs": [pointer]})
    assert not loaded.errors
    assert policy.inputs == Inputs(places=PointerSet([parse_pointer(pointer)]))


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        (
            "",
            (
                'Invalid value: "": would be the whole request, its uid included, and no verdict may depend on that; '
                "leave inputs out to show everything else, or name members"
            ),
        ),
        (
            "/uid",
            (
                "Forbidden: /uid cannot be shown: every request has its own, and no verdict may depend on it (it "
                "travels beside the document, for logs); remove it"
            ),
        ),
        (
            "/uid/a",
            (
                "Forbidden: /uid cannot be shown: every request has its own, and no verdict may depend on it (it "
                "travels beside the document, for logs); remove it"
            ),
        ),
        ("/*", 'Invalid value: "/*": every member of the request includes its uid; name the members instead'),
        ("/*/a", 'Invalid value: "/*/a": every member of the request includes its uid; name the members instead'),
        (
            "/metadata/labels",
            (
                f'Invalid value: "/metadata/labels": an AdmissionRequest has no member "metadata" (it has {MEMBERS}); '
                'what stands in the object under review begins with "/object"'
            ),
        ),
        ("/kind/name", 'Invalid value: "/kind/name": /kind has no member "name"; it has group, kind, version'),
        (
            "/userInfo/user",
            'Invalid value: "/userInfo/user": /userInfo has no member "user"; it has extra, groups, uid, username',
        ),
        ("/userInfo/groups/0/a", 'Invalid value: "/userInfo/groups/0/a": /userInfo/groups/0 has no members'),
        ("/name/a", 'Invalid value: "/name/a": /name has no members'),
        (
            "/namespaceObject/spec",
            (
                'Invalid value: "/namespaceObject/spec": /namespaceObject has no member "spec" in this version; it has '
                "metadata"
            ),
        ),
        (
            "/namespaceObject/metadata/annotations",
            (
                'Invalid value: "/namespaceObject/metadata/annotations": /namespaceObject/metadata has no member '
                '"annotations" in this version; it has labels, name'
            ),
        ),
        (
            "object/metadata",
            (
                'Invalid value: "object/metadata": must be a JSON Pointer (RFC 6901), which starts with "/", such as '
                '"/object/metadata/labels"'
            ),
        ),
        (
            "/object/a~2",
            (
                'Invalid value: "/object/a~2": must be a JSON Pointer (RFC 6901), in which "~" stands as "~0" and "/" '
                'in a name as "~1"'
            ),
        ),
        (5, 'Invalid value: "integer": must be of type string'),
        (None, "Invalid value: null: must not be null"),
    ],
)
def test_errors(one_policy, errors, pointer, expected):
    """Each error is reported at its element, and with any of them nothing is shown."""
    policy, loaded = one_policy({"inputs": ["/object", pointer]})
    assert errors(loaded) == [f"policies[0].inputs[1]: {expected}"]
    assert policy.inputs == Inputs(places=PointerSet())


LIST = 'a list of JSON Pointers such as ["/object/metadata/labels"]'


@pytest.mark.parametrize(("value", "found"), [({}, "object"), ("/object", "string"), (True, "boolean")])
def test_no_list(one_policy, errors, value, found):
    """What is no list shows nothing."""
    policy, loaded = one_policy({"inputs": value})
    assert errors(loaded) == [f'policies[0].inputs: Invalid value: "{found}": must be of type array, {LIST}']
    assert policy.inputs == Inputs(places=PointerSet())


def test_duplicates(one_policy, errors):
    """A pointer that is written twice is an error at the second."""
    _, loaded = one_policy({"inputs": ["/object", "/name", "/object"]})
    assert errors(loaded) == ['policies[0].inputs[2]: Duplicate value: "/object"']


def test_bounds(one_policy, errors):
    """256 pointers of 256 tokens are granted; one more of either is an error."""
    widest = [f"/object/{'a/' * 253}{index}" for index in range(255)]
    assert not one_policy({"inputs": [*widest, "/object" + "/*" * 255]})[1].errors
    assert errors(one_policy({"inputs": [*widest, "/object/a", "/object/b"]})[1]) == [
        "policies[0].inputs: Too many: 257: must have at most 256 items"
    ]
    (error,) = one_policy({"inputs": ["/object" + "/*" * 256]})[1].errors
    assert error.message.endswith("must have at most 256 names, and has 257: no request is nested so deep")


def test_overlaps(one_policy):
    """The wider one wins, and the narrower one is warned of by both names, at its place."""
    policy, loaded = one_policy({"inputs": ["/object/spec/*/a/b", "/object/spec/x/a", "/object/spec/*/a", "/name"]})
    assert not loaded.errors
    assert policy.inputs == Inputs(places=PointerSet([("object", "spec", "*", "a"), ("name",)]))
    assert [(warning.place.path, warning.message) for warning in loaded.warnings] == [
        (
            f"policies[0].inputs[{index}]",
            f"{pointer} lies in /object/spec/*/a, which is wider and wins; remove one of them",
        )
        for index, pointer in enumerate(["/object/spec/*/a/b", "/object/spec/x/a"])
    ]


@pytest.mark.parametrize("field", ["inputs", "writes"])
def test_null(one_policy, field):
    """A list of which nothing remains counts as absent, and a warning reports that: it grants the most."""
    policy, loaded = one_policy({field: None})
    assert (policy.inputs, policy.writes) == (Inputs.EVERYTHING, Writes.DEFAULT)
    assert [(warning.place.path, warning.message) for warning in loaded.warnings] == [
        (
            f"policies[0].{field}",
            "null is the same as leaving it out, which grants the most; write [] for nothing, or remove it",
        )
    ]


def test_empty_name(one_policy):
    """A pointer that ends in a slash means a member without a name, which is hardly meant."""
    _, loaded = one_policy({"inputs": ["/object/metadata/"]})
    (warning,) = loaded.warnings
    assert warning.message == '/object/metadata/ names a member "" of /object/metadata; leave out the last "/"'


TOKENS = st.sampled_from(["object", "kind", "userInfo", "extra", "namespaceObject", "metadata", "uid", "*", "", "a/~b"])
POINTERS = st.lists(TOKENS, max_size=4).map(format_pointer) | st.text(max_size=6)


@pytest.mark.property
@given(st.lists(POINTERS, max_size=5))
def test_all_or_nothing(pointers):
    """Any list of texts either grants exactly its places, never the uid among them, or reports errors and nothing."""
    place = Place(file="f", line=1, path="inputs")
    field = Field(node=Node([Node(pointer, 1) for pointer in pointers], 1), place=place, findings=[])
    inputs = read_inputs(field, [])
    if field.findings:
        assert inputs == Inputs(places=PointerSet())
    else:
        assert inputs == Inputs(places=PointerSet(map(parse_pointer, pointers)))
        assert inputs.places.below("uid") is None
