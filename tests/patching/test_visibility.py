"""What a patch may read and move of an object of which its worker saw a part: nothing hidden, by no way."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.patching.application import PatchDialect, apply_json_patch
from gateway.patching.difference import difference
from gateway.patching.errors import PatchError, ScopeError
from gateway.patching.merging import apply_merge_patch
from gateway.patching.parsing import parse_pointer
from gateway.patching.replacement import apply_object
from gateway.scopes.pointer import format_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.projection import shown_part
from tests.patching.values import SEEDS, SOME, edited, found, objects, places, strictly_equal, text

POD = {
    "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {"token": "secret"}},
    "spec": {
        "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}],
        "volumes": [{"name": "v"}],
        "empty": {},
    },
}
DIALECTS = pytest.mark.parametrize("dialect", PatchDialect)


def visibility(*pointers):
    """What was shown."""
    return PointerSet([parse_pointer(pointer) for pointer in pointers])


IMAGES = visibility("/metadata/labels", "/spec/containers/*/image")


def applied(*operations, document=POD, shown=IMAGES, dialect=PatchDialect.RFC_6902):
    """The object after a JSON Patch by a policy that saw a part."""
    return apply_json_patch(document, text(list(operations)), visibility=shown, dialect=dialect)


READS = {
    "copy a hidden value into a label": {
        "op": "copy",
        "from": "/metadata/annotations/token",
        "path": "/metadata/labels/t",
    },
    "move a hidden value into a label": {
        "op": "move",
        "from": "/metadata/annotations/token",
        "path": "/metadata/labels/t",
    },
    "test a hidden value": {"op": "test", "path": "/metadata/annotations/token", "value": "secret"},
    "test a hidden value wrongly": {"op": "test", "path": "/metadata/annotations/token", "value": "guess"},
    "test what is not there": {"op": "test", "path": "/metadata/annotations/other", "value": "guess"},
    "test a container shown in part": {"op": "test", "path": "/spec/containers/0", "value": {}},
    "copy a container shown in part": {"op": "copy", "from": "/spec/containers/0", "path": "/metadata/labels/c"},
    "test the whole": {"op": "test", "path": "", "value": POD},
    "copy the whole": {"op": "copy", "from": "", "path": "/metadata/labels/all"},
    "test below a scalar": {"op": "test", "path": "/metadata/name/x", "value": 1},
}


@DIALECTS
@pytest.mark.parametrize("operation", READS.values(), ids=READS)
def test_what_was_hidden_is_not_read(operation, dialect):
    """A test, copy or move of what was not shown is outside of the scope, whatever stands there, and says no value."""
    read = operation.get("from", operation["path"])
    with pytest.raises(ScopeError, match="was not shown") as caught:
        applied(operation, dialect=dialect)
    assert f"inputs lack /object{read}; add it, or let the worker leave it alone" in str(caught.value)
    assert "secret" not in str(caught.value)


LOSSES = {
    "replace": ({"op": "replace", "path": "/metadata/annotations/token", "value": 1}, "/metadata/annotations/token"),
    "remove": ({"op": "remove", "path": "/metadata/annotations/token"}, "/metadata/annotations/token"),
    "add onto": ({"op": "add", "path": "/metadata/name", "value": "x"}, "/metadata/name"),
    "an object around": ({"op": "remove", "path": "/metadata"}, "/metadata"),
    "an array around": ({"op": "replace", "path": "/spec/containers", "value": []}, "/spec/containers"),
    "an element": ({"op": "replace", "path": "/spec/containers/0", "value": {}}, "/spec/containers/0"),
    "the target of a copy": (
        {"op": "copy", "from": "/metadata/labels/app", "path": "/metadata/name"},
        "/metadata/name",
    ),
    "the target of a move": (
        {"op": "move", "from": "/metadata/labels/app", "path": "/metadata/annotations"},
        "/metadata/annotations",
    ),
    "the whole": ({"op": "replace", "path": "", "value": {}}, ""),
    "insert before": ({"op": "add", "path": "/spec/containers/0", "value": {}}, "/spec/containers"),
    "insert at the length": ({"op": "add", "path": "/spec/containers/2", "value": {}}, "/spec/containers"),
    "remove an element": ({"op": "remove", "path": "/spec/containers/0"}, "/spec/containers"),
    "pass through a hidden element": ({"op": "add", "path": "/spec/volumes/0/x", "value": 1}, "/spec/volumes"),
    "insert in a hidden array": ({"op": "add", "path": "/spec/volumes/0", "value": 1}, "/spec/volumes"),
}


@DIALECTS
@pytest.mark.parametrize(("operation", "lacking"), LOSSES.values(), ids=LOSSES)
def test_what_was_hidden_is_not_lost_or_shifted(operation, lacking, dialect):
    """An operation that would lose or shift what was hidden is an invalid patch that names the missing input."""
    with pytest.raises(
        PatchError, match=f"inputs lack /object{lacking}; add it, or let the worker leave it alone"
    ) as caught:
        applied(operation, dialect=dialect)
    assert not isinstance(caught.value, ScopeError)


FINE = {
    "write what is shown": [{"op": "replace", "path": "/spec/containers/1/image", "value": "b:2"}],
    "read what is shown": [
        {"op": "test", "path": "/spec/containers/1/image", "value": "b:1"},
        {"op": "copy", "from": "/spec/containers/1/image", "path": "/metadata/labels/image"},
    ],
    "add a hidden member that is not there": [{"op": "add", "path": "/metadata/annotations/new", "value": "x"}],
    "append to an array shown in part": [{"op": "add", "path": "/spec/containers/-", "value": {"name": "c"}}],
    "append to a hidden array": [{"op": "add", "path": "/spec/volumes/-", "value": {"name": "c"}}],
    "read, move and replace its own": [
        {"op": "add", "path": "/metadata/annotations/new", "value": {"x": 1}},
        {"op": "test", "path": "/metadata/annotations/new/x", "value": 1},
        {"op": "replace", "path": "/metadata/annotations/new", "value": {"x": 2}},
        {"op": "move", "from": "/metadata/annotations/new", "path": "/metadata/annotations/newer"},
        {"op": "copy", "from": "/metadata/annotations/newer/x", "path": "/metadata/labels/x"},
        {"op": "remove", "path": "/metadata/annotations/newer"},
    ],
    "write into what it appended": [
        {"op": "add", "path": "/spec/containers/-", "value": {"name": "c"}},
        {"op": "test", "path": "/spec/containers/2/name", "value": "c"},
        {"op": "replace", "path": "/spec/containers/2", "value": {"name": "d", "env": [1]}},
        {"op": "add", "path": "/spec/containers/2/env/0", "value": 0},
    ],
    "remove a container of which all is shown": [{"op": "remove", "path": "/metadata/labels"}],
}


@DIALECTS
@pytest.mark.parametrize("operations", FINE.values(), ids=FINE)
def test_what_hides_nothing_applies_as_if_all_were_shown(operations, dialect):
    """A patch that neither reads, loses nor shifts what was hidden gives what it gives to one who saw all."""
    assert applied(*operations, dialect=dialect) == applied(*operations, shown=None, dialect=dialect)


def test_an_array_whose_elements_are_all_shown_is_shown_whole():
    """``/a/*`` shows an existing array wholly: elements come, go and move."""
    operations = [
        {"op": "add", "path": "/spec/volumes/0", "value": {"name": "first"}},
        {"op": "move", "from": "/spec/volumes/1", "path": "/spec/volumes/0"},
        {"op": "remove", "path": "/spec/volumes/1"},
    ]
    assert applied(*operations, shown=visibility("/spec/volumes/*")) == POD


def test_the_index_of_what_was_appended_to_a_hidden_array_is_hidden():
    """A policy that appends to a hidden array cannot learn its length from the result."""
    append = {"op": "add", "path": "/spec/volumes/-", "value": 7}
    for index in range(3):
        with pytest.raises(ScopeError):
            applied(append, {"op": "test", "path": f"/spec/volumes/{index}", "value": 7})


def test_the_kind_of_a_hidden_container_is_hidden():
    """Who adds at ``-`` to what he was not shown cannot learn whether that became a member or an element."""
    for document in ({"h": []}, {"h": {}}):
        with pytest.raises(ScopeError):
            applied(
                {"op": "add", "path": "/h/-", "value": 7},
                {"op": "test", "path": "/h/-", "value": 7},
                document=document,
                shown=PointerSet(),
            )


@DIALECTS
def test_an_element_in_sight_does_not_leave_an_array_that_is_not(dialect):
    """Moving a shown element out would put a hidden one in its place."""
    with pytest.raises(PatchError, match=r"inputs lack /object/spec/containers; add it"):
        applied(
            {"op": "move", "from": "/spec/containers/0", "path": "/metadata/labels/c"},
            {"op": "copy", "from": "/spec/containers/0", "path": "/metadata/labels/d"},
            shown=visibility("/spec/containers/0", "/metadata/labels"),
            dialect=dialect,
        )


@DIALECTS
def test_an_array_is_not_its_own_for_what_was_appended(dialect):
    """Who has appended an element has not seen the others: they are shifted as little as before."""
    with pytest.raises(PatchError, match=r"inputs lack /object/spec/containers; add it"):
        applied(
            {"op": "add", "path": "/spec/containers/-", "value": {}},
            {"op": "add", "path": "/spec/containers/0", "value": {}},
            dialect=dialect,
        )


@pytest.mark.parametrize("token", ["-1", "+0", "00"])
def test_an_index_that_only_kubernetes_reads_is_refused_where_something_is_hidden(token):
    """An index that is none in RFC 6901 is not what was shown, even if an input calls a member so."""
    shown = visibility(f"/spec/volumes/{token}", "/spec/containers/*/image")
    for operation in (
        {"op": "test", "path": f"/spec/volumes/{token}", "value": {"name": "v"}},
        {"op": "add", "path": f"/spec/containers/{token}/image", "value": "x"},
        {"op": "replace", "path": f"/spec/containers/{token}/new", "value": "x"},
    ):
        with pytest.raises(PatchError, match="was not shown whole"):
            applied(operation, shown=shown, dialect=PatchDialect.KUBERNETES)


def test_kubernetes_own_corners_apply_where_all_is_shown():
    """A replace of an absent member, a test for null and a negative index do what they do, within what is shown."""
    operations = [
        {"op": "replace", "path": "/metadata/annotations/new", "value": "x"},
        {"op": "test", "path": "/metadata/labels/none", "value": None},
        {"op": "remove", "path": "/spec/volumes/-1"},
    ]
    got = applied(*operations, shown=visibility("/metadata/labels", "/spec/volumes/*"), dialect=PatchDialect.KUBERNETES)
    assert got["metadata"]["annotations"] == {"token": "secret", "new": "x"}
    assert got["spec"]["volumes"] == []


def test_a_hidden_kind_is_not_reported():
    """Whether a hidden scalar or nothing is in the way, the message is the same."""
    said = set()
    for document in ({"a": {"b": "s"}}, {"a": {}}, {"a": {"b": 1}}):
        with pytest.raises(PatchError) as caught:
            applied({"op": "add", "path": "/a/b/c", "value": 1}, document=document, shown=PointerSet())
        said.add(str(caught.value))
    assert said == {
        'operation 1 (add /a/b/c): there is no "c" in /a/b',
        'operation 1 (add /a/b/c): there is no "b" in /a',
    }


MERGES = {
    "an array shown in part": ({"spec": {"containers": []}}, "/spec/containers"),
    "a hidden array": ({"spec": {"volumes": None}}, "/spec/volumes"),
    "a hidden array, by what it is": ({"spec": {"volumes": [{"name": "v"}]}}, "/spec/volumes"),
    "an object in its place": ({"spec": {"volumes": {}}}, "/spec/volumes"),
    "an object with arrays in it": ({"spec": None}, "/spec"),
    "the same by a scalar": ({"spec": 1}, "/spec"),
}


@pytest.mark.parametrize(("patch", "lacking"), MERGES.values(), ids=MERGES)
def test_a_merge_patch_leaves_hidden_arrays_alone(patch, lacking):
    """An existing array that was not shown whole is not replaced, removed or lost, be it by an equal one."""
    with pytest.raises(PatchError, match=f"inputs lack /object{lacking}; add it"):
        apply_merge_patch(POD, text(patch), visibility=IMAGES)


def test_a_merge_patch_may_set_what_it_was_not_shown():
    """Members are set and removed by name, new arrays created, and arrays shown whole replaced."""
    patch = {"metadata": {"annotations": {"token": None, "new": "x"}}, "spec": {"volumes": [1], "args": ["new"]}}
    got = apply_merge_patch(POD, text(patch), visibility=visibility("/spec/volumes/*"))
    assert got == apply_merge_patch(POD, text(patch))


def returned(change, shown=IMAGES, document=POD):
    """The object after a worker returned what it was sent, changed."""
    sent = json.loads(json.dumps(shown_part(document, shown)))
    change(sent)
    return apply_object(document, text(sent), visibility=shown)


def test_a_whole_object_is_compared_with_what_was_sent():
    """What was hidden is still there, and what was changed in the part is changed in the whole."""

    def change(sent):
        sent["metadata"]["labels"]["team"] = "a"
        sent["metadata"]["annotations"] = {}
        sent["new"] = [1]

    with pytest.raises(PatchError, match=r"the object: .*inputs lack /object/metadata/annotations; add it"):
        returned(change)
    document = {**POD, "metadata": {key: POD["metadata"][key] for key in ("name", "labels")}}
    got = returned(change, document=document)
    assert difference(document, got) == difference(
        document,
        {
            **document,
            "metadata": {"name": "web", "labels": {"app": "web", "team": "a"}, "annotations": {}},
            "new": [1],
        },
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda sent: sent["spec"]["containers"].append({"name": "c"}),
        lambda sent: sent["spec"]["containers"].pop(),
        lambda sent: sent["spec"]["containers"][0].update(image="x"),
        lambda sent: sent["spec"].update(containers=1),
        lambda sent: sent.pop("spec"),
    ],
)
def test_a_whole_object_may_not_change_an_array_shown_in_part(change):
    """Which element became which is a guess, so an array of the sent object that differs must have been sent whole."""
    with pytest.raises(PatchError, match=r"the object: .*inputs lack /object/spec"):
        returned(change)


def test_a_whole_object_may_change_an_array_that_was_sent_whole():
    """Then elements come and go."""
    got = returned(lambda sent: sent["spec"]["volumes"].insert(0, 1), shown=visibility("/spec/volumes/*"))
    assert got == {**POD, "spec": {**POD["spec"], "volumes": [1, {"name": "v"}]}}


def test_a_whole_object_by_one_who_saw_all_is_what_was_returned():
    """With nothing hidden it is the parsed text, whatever stood there."""
    assert apply_object(POD, b'{"a": [1]}') == {"a": [1]}
    assert apply_object(POD, b'{"a": [1]}', visibility=visibility("")) == {"a": [1]}


# ------------------------------------------------------------------------------------------------ properties
TOKENS = ["a", "b", "name", "", "0", "1", "-", "-1", "+0", "01", "~", "new"]


def random_sight(random, document):
    """Some places of a document, some of them for all siblings, and some that do not exist."""
    pointers = []
    for _ in range(random.randrange(4)):
        pointer = random.choice(places(document))
        pointer = tuple("*" if random.random() < 0.25 else token for token in pointer)
        pointers.append((*pointer, random.choice(TOKENS)) if random.random() < 0.2 else pointer)
    return PointerSet([pointer for pointer in pointers if pointer])


def disguised(value, view, exchange):
    """The same document with other hidden scalars: ``exchange`` gives one for another."""
    if view is not None and view.whole:
        return value
    if isinstance(value, dict):
        return {name: disguised(child, view and view.below(name), exchange) for name, child in value.items()}
    if isinstance(value, list):
        return [disguised(child, view and view.below(str(at)), exchange) for at, child in enumerate(value)]
    return exchange(value)


def restructured(value, view, random):
    """The same document with other hidden members: what is shown of it is the same."""
    if view is not None and view.whole:
        return value
    if isinstance(value, dict):
        result = {name: restructured(child, view and view.below(name), random) for name, child in value.items()}
        for name in [*value, *TOKENS]:
            if (view is None or view.below(name) is None) and random.random() < 0.3:
                result.pop(name, None)
                if random.random() < 0.5:
                    result[name] = random.choice([None, 1, "x", {}, [], {"a": 1}, [1, 2]])
        return result
    if isinstance(value, list):
        return [restructured(child, view and view.below(str(at)), random) for at, child in enumerate(value)]
    return value


def marked(document, shown):
    """The document with a marker for each hidden scalar, none like another."""
    count = iter(range(1_000_000))
    return disguised(document, shown, lambda _: f"hidden-{next(count)}")


def markers(document):
    """Where the markers are."""
    return {
        pointer: value
        for pointer in places(document)
        if isinstance(value := found(document, pointer), str) and value.startswith("hidden-")
    }


def random_operation(random, document, shown):
    """Any patch that a policy might try; mostly about what exists."""

    def somewhere():
        pointer = random.choice(places(document))
        if random.random() < 0.4:
            pointer = (*(pointer if random.random() < 0.5 else pointer[:-1]), random.choice(TOKENS))
        return pointer

    def readable():
        seen = [pointer for pointer in places(document) if shown.covers(pointer)]
        return random.choice(seen) if seen and random.random() < 0.7 else somewhere()

    name = random.choice(["add", "add", "add", "remove", "replace", "move", "copy", "test"])
    operation = {"op": name, "path": format_pointer(readable() if name == "test" else somewhere())}
    if name in {"move", "copy"}:
        operation["from"] = format_pointer(readable())
    elif name == "test" and random.random() < 0.8:
        operation["value"] = found(document, parse_pointer(operation["path"]))
    elif name != "remove":
        operation["value"] = random.choice([None, 1, "x", [], {}, {"a": 1}, [1, {"a": 2}]])
    return operation


def random_patch(random, document, shown, dialect):
    """A patch by a policy that tries until it applies, and keeps some of what does not."""
    operations, now, known = [], document, shown
    for _ in range(random.randrange(1, 9)):
        operation = random_operation(random, now, known)
        try:
            now = apply_json_patch(document, text([*operations, operation]), visibility=shown, dialect=dialect)
        except PatchError:
            if random.random() < 0.15:
                return [*operations, operation]
        else:
            operations.append(operation)
            known = PointerSet([*known.pointers, parse_pointer(operation["path"])])
    return operations


def outcome(apply, document, content, shown):
    """What was said, or what is shown of the result."""
    try:
        return shown_part(apply(document, content, visibility=shown), shown)
    except PatchError as error:
        return type(error), str(error)


def result(apply, document, content, shown):
    """The object after it, and an empty message; or what was said."""
    try:
        return apply(document, content, visibility=shown), ""
    except PatchError as error:
        return None, str(error)


def by_dialect(dialect):
    """apply_json_patch in one of them."""
    return lambda document, content, *, visibility: apply_json_patch(
        document, content, visibility=visibility, dialect=dialect
    )


def same(one, other):
    """Whether two outcomes are the same."""
    return one == other if isinstance(one, tuple) or isinstance(other, tuple) else strictly_equal(one, other)


ARRAYS = st.just({"a": [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "b": {"a": [1, 2, 3], "b": [[4], [5, 6]]}, "name": "x"})
ATTACKS = st.tuples(objects() | ARRAYS, SEEDS, st.sampled_from(PatchDialect))


@pytest.mark.property
@SOME
@given(ATTACKS)
def test_a_hidden_value_never_changes_its_place(attack):
    """Whatever a patch does, each hidden scalar is afterwards where it was, and nowhere else."""
    document, random, dialect = attack
    shown = random_sight(random, document)
    document = marked(document, shown)
    content = text(random_patch(random, document, shown, dialect))
    after, fault = result(by_dialect(dialect), document, content, shown)
    assert "hidden-" not in fault
    if not fault:
        assert markers(after) == markers(document)
        raw = msgspec.Raw(text(document)) if dialect is PatchDialect.KUBERNETES else document
        assert strictly_equal(after, apply_json_patch(raw, content, visibility=shown, dialect=dialect))


@pytest.mark.property
@SOME
@given(ATTACKS)
def test_hidden_values_make_no_difference(attack):
    """Two objects that differ in hidden scalars give the same outcome, to the last word."""
    document, random, dialect = attack
    shown = random_sight(random, document)
    other = disguised(document, shown, lambda _: random.choice([None, True, 0, 1, "x", "s", 2.5]))
    content = text(random_patch(random, document, shown, dialect))
    apply = by_dialect(dialect)
    assert same(outcome(apply, document, content, shown), outcome(apply, other, content, shown))


@pytest.mark.property
@SOME
@given(ATTACKS)
def test_hidden_members_change_nothing_that_is_shown(attack):
    """Two objects of which the same is shown: where a patch applies to both, the same is shown of the results.

    And where one answer is that the patch reads what is hidden, the other is not that it applies.
    """
    document, random, dialect = attack
    shown = random_sight(random, document)
    other = restructured(document, shown, random)
    assert strictly_equal(shown_part(document, shown), shown_part(other, shown))
    content = text(random_patch(random, document, shown, dialect))
    one, two = (outcome(by_dialect(dialect), each, content, shown) for each in (document, other))
    if not isinstance(one, tuple) and not isinstance(two, tuple):
        assert strictly_equal(one, two)
    for some, others in ((one, two), (two, one)):
        if isinstance(some, tuple) and some[0] is ScopeError:
            assert isinstance(others, tuple)


@pytest.mark.property
@SOME
@given(objects() | ARRAYS, SEEDS)
def test_merge_patches_and_whole_objects_read_nothing_hidden(document, random):
    """Neither form distinguishes hidden scalars, moves one, or, but for members that a merge patch names, loses one."""
    shown = random_sight(random, document)
    document = marked(document, shown)
    sent = shown_part(document, shown)
    before = markers(document)
    for apply, content in (
        (apply_merge_patch, text(edited(random, document))),
        (apply_merge_patch, text(edited(random, sent))),
        (apply_object, text(edited(random, sent))),
    ):
        other = disguised(document, shown, lambda _: random.choice([None, True, 1, "x"]))
        if content.startswith(b"{"):
            assert same(outcome(apply, document, content, shown), outcome(apply, other, content, shown))
        after, fault = result(apply, document, content, shown)
        assert "hidden-" not in fault
        if not fault:
            assert markers(after).items() <= before.items()
            assert apply is apply_merge_patch or markers(after) == before


@pytest.mark.property
@SOME
@given(objects(), SEEDS, st.sampled_from(PatchDialect))
def test_who_saw_all_is_not_restrained(document, random, dialect):
    """With everything in sight a patch does what it does without a sight."""
    content = text(random_patch(random, document, PointerSet([()]), dialect))
    everything = PointerSet([(name,) for name in document])

    everywhere, part, plain = (
        result(by_dialect(dialect), document, content, shown) for shown in (PointerSet([()]), everything, None)
    )
    assert everywhere[1] == plain[1]
    assert strictly_equal(everywhere[0], plain[0])
    # Without the root in sight, new members at its side may be written, and not be read.
    assert part[1] or strictly_equal(part[0], plain[0])


def test_a_place_is_looked_at_once():
    """What was replaced is the patch's own: replacing it 5,000 times does not look at the thousand members again."""

    wide = {"a": {str(number): {"b": number} for number in range(1_000)}}
    content = text([{"op": "replace", "path": "/a", "value": {}}] * 5_000)
    assert apply_json_patch(wide, content, visibility=visibility("/a/*")) == {"a": {}}
