"""Who changed what: by the field, by the element, and exactly what differs."""

from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from msgspec import UNSET

from gateway.patching.application import apply_json_patch
from gateway.patching.difference import Operation, difference, encode_patch
from gateway.patching.equality import equal
from gateway.patching.field_ownership import FieldOwnership
from gateway.patching.parsing import parse_pointer
from gateway.patching.placement import placed
from gateway.patching.sequence_diff import sequence_diff
from gateway.scopes.pointer import format_pointer
from tests.patching.values import SEEDS, SOME, edited, found, objects, places, strictly_equal, text, values

A, B, C, D = range(4)


def reported(original, *versions):
    """The authorship of an object that A, B, C and so on changed into these versions one after another."""
    authorship, now = FieldOwnership(original), original
    for order, (author, after) in enumerate(versions):
        authorship.record(author, order, difference(now, after), after)
        now = after
    return authorship


def overwritten(original, *versions):
    """What the last of them overwrites: {place: authors}."""
    *earlier, (author, after) = versions
    authorship = reported(original, *earlier)
    now = earlier[-1][1] if earlier else original
    found = authorship.overwritten(difference(now, after), author=author)
    return {each.pointer: set(each.authors) for each in found}


def changes(original, *versions):
    """The changes in short: (op, place, order, earlier)."""
    return [
        (each.op, each.pointer, each.order, each.earlier)
        for each in reported(original, *versions).changes(versions[-1][1])
    ]


def pod(*containers, **labels):
    """A Pod with some containers and labels."""
    return {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}


def container(name, image="v1"):
    """A container."""
    return {"name": name, "image": image, "env": [{"name": "X", "value": "1"}]}


WEB, SIDECAR = container("web"), container("sidecar")
CONFLICTS = {
    "nothing before": (pod(), [(A, pod(a="1"))], {}),
    "another label": (pod(), [(A, pod(a="1")), (B, pod(a="1", b="2"))], {}),
    "the same label": (pod(), [(A, pod(a="1")), (B, pod(a="2"))], {"/metadata/labels/a": {A}}),
    "the label removed": (pod(x="0"), [(A, pod(x="0", a="1")), (B, pod(x="0"))], {"/metadata/labels/a": {A}}),
    "all labels removed": ({"l": {"x": 0}}, [(A, {"l": {"x": 0, "a": 1}}), (B, {})], {"/l/a": {A}}),
    "a label removed, and added again": (
        pod(x="0"),
        [(A, pod()), (B, pod(x="0"))],
        {"/metadata/labels/x": {A}},
    ),
    "a removed label, among others": ({"l": {"x": 0}}, [(A, {}), (B, {"l": {"y": 1}})], {}),
    "all removed, and one added again": ({"l": {"x": 0, "y": 1}}, [(A, {}), (B, {"l": {"x": 0}})], {"/l/x": {A}}),
    "inside what another added": ({}, [(A, {"l": {"a": 1}}), (B, {"l": {"a": 1, "b": 2}})], {}),
    "a leaf of what another added": ({}, [(A, {"l": {"a": 1}}), (B, {"l": {"a": 2}})], {"/l/a": {A}}),
    "two of them": (
        {},
        [(A, {"l": {"a": 1}}), (B, {"l": {"a": 1, "b": 1}}), (C, {"l": 1})],
        {"/l/a": {A}, "/l/b": {B}},
    ),
    "a field that two wrote": ({"a": 0}, [(A, {"a": 1}), (B, {"a": 2}), (C, {"a": 3})], {"/a": {A, B}}),
    "one's own": ({"a": 0}, [(A, {"a": 1}), (A, {"a": 2})], {}),
    "undone in the second round": ({"a": 0}, [(A, {"a": 1}), (B, {"a": 2}), (A, {"a": 1})], {"/a": {B}}),
    "another element": (pod(WEB), [(A, pod(SIDECAR, WEB)), (B, pod(SIDECAR, WEB, container("more")))], {}),
    "in front of another's element": (pod(WEB), [(A, pod(SIDECAR, WEB)), (B, pod(container("x"), SIDECAR, WEB))], {}),
    "the element itself": (
        pod(WEB),
        [(A, pod(SIDECAR, WEB)), (B, pod(container("sidecar", "v2"), WEB))],
        {"/spec/containers/0/image": {A}},
    ),
    "the element that was moved by another": (
        pod(WEB),
        [(A, pod(container("web", "v2"))), (B, pod(SIDECAR, container("web", "v2"))), (C, pod(SIDECAR, WEB))],
        {"/spec/containers/1/image": {A}},
    ),
    "behind an element of its own": (
        pod(WEB),
        [(A, pod(container("web", "v2"))), (B, pod(SIDECAR, WEB))],
        {"/spec/containers/0/image": {A}},
    ),
    "an added element removed": (
        pod(WEB),
        [(A, pod(SIDECAR, WEB)), (B, pod(WEB))],
        {f"/spec/containers/0/{leaf}": {A} for leaf in ("name", "image", "env/0/name", "env/0/value")},
    ),
    "a removed element added again": (
        pod(WEB, SIDECAR),
        [(A, pod(WEB)), (B, pod(WEB, SIDECAR))],
        {"/spec/containers/1": {A}},
    ),
    "a removed array added again": ({"l": [1, 2]}, [(A, {}), (B, {"l": [3]})], {"/l": {A}}),
    "an empty object removed": ({}, [(A, {"l": {}}), (B, {})], {"/l": {A}}),
    "an empty object filled": ({}, [(A, {"l": {}}), (B, {"l": {"a": 1}})], {}),
}


@pytest.mark.parametrize(("original", "versions", "expected"), CONFLICTS.values(), ids=CONFLICTS)
def test_what_a_change_writes_again(original, versions, expected):
    """A change overwrites the leaves that others wrote, came or gone, and none beside them."""
    assert overwritten(original, *versions) == expected


def test_without_an_author_all_authors_count():
    """Without an author, overwrites of all authors are reported."""
    authorship = reported({"a": 0}, (A, {"a": 1}), (B, {"a": 2}))
    (found,) = authorship.overwritten(difference({"a": 2}, {"a": 3}))
    assert (found.pointer, found.authors) == ("/a", {A, B})


FIELDS = {
    "one": (pod(), [(A, pod(a="1"))], [("add", "/metadata/labels/a", 0, ())]),
    "the last counts": ({"a": 0}, [(A, {"a": 1}), (B, {"a": 2})], [("replace", "/a", 1, (0,))]),
    "as it was": ({"a": 0}, [(A, {"a": 1}), (B, {"a": 0})], []),
    "removed": (pod(x="0"), [(A, pod(x="1")), (B, pod())], [("remove", "/metadata/labels/x", 1, (0,))]),
    "come and gone": (pod(), [(A, pod(a="1")), (B, pod())], []),
    "moved by another's element": (
        pod(WEB),
        [(A, pod(container("web", "v2"))), (B, pod(SIDECAR, container("web", "v2")))],
        [("add", "/spec/containers/0", 1, ()), ("replace", "/spec/containers/1/image", 0, ())],
    ),
    "removed from where it was": (
        pod(WEB, SIDECAR),
        [(A, pod(container("x"), WEB, SIDECAR)), (B, pod(container("x"), SIDECAR))],
        [("remove", "/spec/containers/0", 1, ()), ("add", "/spec/containers/0", 0, ())],
    ),
    "changed, then removed, between others": (
        [1, {"n": 2, "i": 0}, 3],
        [(A, [1, {"n": 2, "i": 9}, 3]), (B, [1, 3]), (C, [1, 3, 4])],
        [("remove", "/1", 1, ()), ("add", "/2", 2, ())],
    ),
    "inside what another added": (
        pod(),
        [(A, pod(SIDECAR)), (B, pod(container("sidecar", "v2")))],
        [("add", "/spec/containers/0", 0, ()), ("replace", "/spec/containers/0/image", 1, (0,))],
    ),
    "added inside what another added": (
        {},
        [(A, {"l": {"a": 1}}), (B, {"l": {"a": 1, "b": {"c": 1}}}), (C, {"l": {"b": {"c": 1, "d": 2}}})],
        [("add", "/l", 0, ()), ("add", "/l/b", 1, ()), ("add", "/l/b/d", 2, ())],
    ),
    "removed inside what another removed": (
        {"l": {"x": 1, "y": 2}},
        [(A, {"l": {"y": 2}}), (B, {})],
        [("remove", "/l", 1, ()), ("remove", "/l/x", 0, ())],
    ),
    "removed as a whole and come again in part": (
        {"l": {"x": 1, "y": 2}},
        [(A, {}), (B, {"l": {"y": 3, "z": 4}})],
        [("remove", "/l/x", 0, ()), ("replace", "/l/y", 1, (0,)), ("add", "/l/z", 1, ())],
    ),
    "another kind": ({"a": {"b": 1}}, [(A, {"a": "s"})], [("replace", "/a", 0, ())]),
}


@pytest.mark.parametrize(("original", "versions", "expected"), FIELDS.values(), ids=FIELDS)
def test_who_changed_a_field(original, versions, expected):
    """Every field that differs has the last order that wrote it, and the earlier ones; no other field appears."""
    assert changes(original, *versions) == expected


def test_before_and_after():
    """An entry has the original's value and the final one; inside what another added, what was found there."""
    authorship = reported(pod(x="0"), (A, pod(SIDECAR, x="1")), (B, pod(container("sidecar", "v2"))))
    got = {each.pointer: (each.before, each.after) for each in authorship.changes(pod(container("sidecar", "v2")))}
    assert got == {
        "/metadata/labels/x": ("0", UNSET),
        "/spec/containers/0": (UNSET, container("sidecar", "v2")),
        "/spec/containers/0/image": ("v1", "v2"),
    }


def test_nothing_was_changed():
    """Without a change there is no entry."""
    assert FieldOwnership({"a": 1}).changes({"a": 1}) == ()


# ------------------------------------------------------------------------------------------------ properties
def history(random, original):
    """What several authors make of an object, in order."""
    versions, now = [], original
    for _ in range(random.randrange(1, 6)):
        after = random.choice([version for _, version in versions] or [original]) if random.random() < 0.15 else now
        for _ in range(random.randrange(1, 4)):
            after = edited(random, after)
        versions.append((random.randrange(3), after))
        now = after
    return versions


DOCUMENTS = objects() | values()


@pytest.mark.property
@SOME
@given(DOCUMENTS, SEEDS)
def test_the_places_of_a_difference(before, random):
    """Each operation's place before is where its value was, and its path where it is afterwards."""
    after = edited(random, edited(random, edited(random, before)))
    for change in placed(before, difference(before, after)):
        if change.found is not UNSET:
            assert found(before, change.old) is change.found
        if change.value is not UNSET:
            assert found(after, change.path) is change.value


@pytest.mark.property
@SOME
@given(DOCUMENTS, SEEDS)
def test_the_changes_lead_from_the_original_to_the_final_object(original, random):
    """Applied in order, the changes make the final object out of the original; none of them changes nothing."""
    versions = history(random, original)
    final = versions[-1][1]
    got = list(sequence_diff(original, final, reported(original, *versions)._root))
    operations = [Operation(op=each.op, path=format_pointer(each.path), value=each.value) for each in got]
    assert strictly_equal(apply_json_patch(original, encode_patch(operations)), final)
    for each in got:
        assert each.found is UNSET or each.value is UNSET or not equal(each.found, each.value)
        assert each.found is UNSET or found(original, each.old) is each.found
        assert each.value is UNSET or found(final, each.path) is each.value
    if equal(original, final):
        assert got == []


def related(one, other):
    """Whether one of two places lies at or above the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


@pytest.mark.property
@SOME
@given(DOCUMENTS, SEEDS)
def test_the_changes_explain_the_difference(original, random):
    """Every operation of the difference lies at, above or below an entry, or in an array of which elements came or
    went; and every entry at, above or below an operation, or in such an array.
    """
    versions = history(random, original)
    final = versions[-1][1]
    authorship = reported(original, *versions)
    entries = [parse_pointer(entry.pointer) for entry in authorship.changes(final)]
    operations = list(placed(original, difference(original, final)))
    steps = [*operations, *sequence_diff(original, final, authorship._root)]
    arrays = [container for each in steps if each.element for container in (each.old[:-1], each.path[:-1])]
    stated = [each.old if each.op == "remove" else each.path for each in operations]
    for some, others in ((stated, entries), (entries, stated)):
        for pointer in some:
            assert any(related(pointer, each) for each in [*others, *arrays])
    for entry in authorship.changes(final):
        assert not (entry.before is not UNSET and entry.after is not UNSET and equal(entry.before, entry.after))
        assert entry.order in range(len(versions))
        assert all(each in range(entry.order) for each in entry.earlier)
        assert list(entry.earlier) == sorted(set(entry.earlier))


def stamped(value, order):
    """A value with the order instead of each scalar."""
    if isinstance(value, dict):
        return {name: stamped(child, order) for name, child in value.items()}
    if isinstance(value, list):
        return [stamped(child, order) for child in value]
    return order


@pytest.mark.property
@SOME
@given(objects(), SEEDS)
def test_the_last_writer_is_who_wrote_last(original, random):
    """The order of an entry is that of a reference that stamps each scalar with its order and applies the operations
    to the stamps.

    Where the stamp is missing, the difference has taken another of several elements for the new one.
    """
    versions = history(random, original)
    stamps, now = stamped(original, -1), original
    for order, (_, after) in enumerate(versions):
        for operation in difference(now, after):
            written = [{"op": operation.op, "path": operation.path, "value": stamped(operation.value, order)}]
            stamps = apply_json_patch(stamps, text(written))
        now = after
    turns = {}
    for entry in reported(original, *versions).changes(now):
        if entry.op != "remove":
            inside = [(*parse_pointer(entry.pointer), *pointer) for pointer in places(entry.after)]
            turns |= dict.fromkeys(inside, entry.order)
    for pointer, order in turns.items():
        stamp = found(stamps, pointer)
        if isinstance(stamp, int) and stamp >= 0:
            assert order == stamp, (pointer, original, versions)


def test_the_deepest_objects_are_followed():
    """An object of 256 levels, the most there are, is recorded, judged and explained."""

    def deep(leaf):
        value = leaf
        for level in range(254):
            value = [value] if level % 2 else {"a": value}
        return {"o": value}

    versions = [(A, {}), (B, deep(1)), (C, deep({"x": 1}))]
    authorship = reported(deep(0), *versions)
    assert [each.order for each in authorship.changes(deep({"x": 1}))] == [2]
    assert overwritten(deep(0), *versions, (D, {})) != {}


def test_the_cost_is_that_of_the_change():
    """What no policy touched is not compared: an object that cannot be compared does not matter."""

    class Untouched:
        def __eq__(self, other):
            raise AssertionError("was looked at")

        __hash__ = None

    rest = Untouched()
    original = {"rest": rest, "labels": {}}
    after = {"rest": rest, "labels": {"a": "b"}}
    authorship = reported(original, (A, after))
    assert [each.pointer for each in authorship.changes(after)] == ["/labels/a"]
    assert authorship.overwritten(difference(after, {"rest": rest, "labels": {}}), author=B)[0].authors == {A}


def wrapped(value, fresh):
    """A value whose array elements have a name of their own, which they keep wherever they are moved."""
    if isinstance(value, dict):
        return {name: wrapped(child, fresh) for name, child in value.items()}
    if isinstance(value, list):
        return [(next(fresh), wrapped(child, fresh)) for child in value]
    return value


def leaves(value, at=()):
    """The places of all values that hold no other, elements by their names."""
    if isinstance(value, dict) and value:
        return {place for name, child in value.items() for place in leaves(child, (*at, name))}
    if isinstance(value, list) and value:
        return {place for name, child in value for place in leaves(child, (*at, name))}
    return {at}


def holds_array(value):
    """Whether there is an array in a value, which is another one to the reference when it comes again."""
    return any(isinstance(found(value, place), list) for place in places(value))


def perform(document, operation, fresh):
    """One operation on a wrapped document: the document after it, and the places of the leaves that it wrote."""
    tokens, at, node = parse_pointer(operation.path), (), document
    for token in tokens[:-1]:
        name, node = node[int(token)] if isinstance(node, list) else (token, node[token])
        at = (*at, name)
    new = None if operation.op == "remove" else wrapped(operation.value, fresh)
    if not tokens:
        return new, leaves(document) | leaves(new)
    written = set()
    if isinstance(node, list):
        index = int(tokens[-1])
        name = next(fresh)
        if operation.op != "add":
            name, found = node.pop(index)
            written |= leaves(found, (*at, name))
        if operation.op != "remove":
            node.insert(index, (name, new))
            written |= leaves(new, (*at, name))
    else:
        name = tokens[-1]
        if name in node:
            written |= leaves(node.pop(name), (*at, name))
        if operation.op != "remove":
            node[name] = new
            written |= leaves(new, (*at, name))
    return document, written


@pytest.mark.property
@SOME
@given(objects(), SEEDS)
def test_conflicts_are_those_of_a_reference(original, random):
    """What is overwritten is what a reference finds that names every element and remembers every leaf.

    Beyond that only what came again after it had gone: an element, or an array, is then another one to the reference.
    """
    versions = [(order, after) for order, (_, after) in enumerate(history(random, original))]
    fresh, now, writers = count(), original, {}
    document = wrapped(original, fresh)
    for author, after in versions:
        operations = difference(now, after)
        written = set()
        for operation in operations:
            document, here = perform(document, operation, fresh)
            written |= here
        expected = Counter(frozenset(writers[place]) for place in written if place in writers)
        overwrites = reported(original, *versions[:author]).overwritten(operations, author=author)
        got = Counter(each.authors for each in overwrites)
        assert expected <= got
        changed = list(placed(now, operations))
        if not any((each.op == "add" and each.element) or holds_array(each.value) for each in changed):
            assert got == expected
        if any(holds_array(each.found) for each in changed):
            return
        for place in written:
            writers.setdefault(place, set()).add(author)
        now = after
