"""The work that one worker's answer causes is bounded, whatever it holds: counted in calls of functions, not in time.

A call takes 0.1 to 0.5 µs: 400,000 of them some 0.1 s, in several slices. Before the limits, an answer of 8 KB took
100,000,000.
"""

import json
import sys
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import depth
from gateway.engine.object_state import AppliedChange, Scope, apply_change
from gateway.engine.verdicts import Change, ChangeKind, Failure
from gateway.patching import kubernetes
from gateway.patching.application import apply_json_patch
from gateway.patching.difference import Operation, difference, encode_patch
from gateway.patching.equality import equal
from gateway.patching.field_ownership import FieldOwnership
from gateway.patching.limits import DEFAULT_LIMITS
from gateway.patching.sequence_diff import sequence_diff
from gateway.patching.steps import Steps
from gateway.reasons import Reason
from gateway.scopes.pointer import format_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes
from gateway.slices import finished
from tests.patching.values import SEEDS, SOME, edited, objects, strictly_equal

MOST_CALLS = 1_500_000
"""Of functions, Python's or C's, in all that follows from one answer."""

BASE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "labels": {"a": "b"}}}
LONG = list(range(190_000))
OBJECTS = [{"name": f"n{index}", "value": index} for index in range(35_000)]
MEMBERS = {f"k{index}": 0 for index in range(95_000)}


def shuffled(values):
    """The same values in another order."""
    return Random(1).sample(values, len(values))


def arrays(seed, *sizes):
    """Arrays in arrays, of few different numbers."""
    random = Random(seed)

    def made(size, *rest):
        return [made(*rest) if rest else random.randrange(4) for _ in range(size)]

    return made(*sizes)


def deep(levels, leaf):
    """A value in that many arrays."""
    for _ in range(levels):
        leaf = [leaf]
    return leaf


def json_patch(*operations):
    """A JSON Patch."""
    return ChangeKind.JSON_PATCH, list(operations)


def whole(**members):
    """A whole object."""
    return ChangeKind.OBJECT, BASE | members


def merge(**members):
    """A merge patch."""
    return ChangeKind.MERGE_PATCH, members


ADDRESS = "/a" * 200
CHAIN = json.loads('{"a":' * 200 + "{}" + "}" * 200)
ATTACKS = {
    "copies that double": ({"l": ["x"]}, json_patch(*[{"op": "copy", "from": "/l", "path": "/l/-"}] * 40)),
    "200 copies of a long array": (
        {"l": [], "m": [[]] * 30_000},
        json_patch(*[{"op": "copy", "from": "/m", "path": "/l/-"}] * 200),
    ),
    "5,000 copies of a short array": (
        {"l": [], "m": [0] * 30},
        json_patch(*[{"op": "copy", "from": "/m", "path": "/l/-"}] * 5_000),
    ),
    "adds at the head of a long array": (
        {"l": LONG},
        json_patch(*[{"op": "add", "path": "/l/0", "value": index} for index in range(500)]),
    ),
    "replacements all over a long array": (
        {"l": LONG},
        json_patch(*[{"op": "replace", "path": f"/l/{index * 19}", "value": -1} for index in range(10_000)]),
    ),
    "moves across a long array": (
        {"l": LONG},
        json_patch(*[{"op": "move", "from": "/l/0", "path": "/l/180000"}] * 500),
    ),
    "a long array": ({}, json_patch({"op": "add", "path": "/data", "value": LONG})),
    "a million tiny values": ({}, json_patch({"op": "add", "path": "/data", "value": [0] * 1_000_000})),
    "floats that take long to read": (
        {},
        json_patch({"op": "add", "path": "/data", "value": [1.7976931348623157e308] * 190_000}),
    ),
    "as many of these floats as allowed": (
        {},
        json_patch({"op": "add", "path": "/data", "value": [1.7976931348623157e308] * 20_000}),
    ),
    "integers that take long to read": ({}, json_patch({"op": "add", "path": "/data", "value": [10**4_299] * 150})),
    "many empty arrays for many empty objects": (
        {"data": [[]] * 60_000},
        json_patch({"op": "replace", "path": "/data", "value": [{}] * 60_000}),
    ),
    "long pointers": (
        CHAIN,
        json_patch(*[{"op": "add", "path": f"{ADDRESS}/k{index}", "value": 1} for index in range(5_000)]),
    ),
    "long pointers, as many as allowed": (
        CHAIN,
        json_patch(*[{"op": "add", "path": f"{ADDRESS}/k{index}", "value": 1} for index in range(490)]),
    ),
    "deep values": (
        {"l": [0]},
        json_patch(*[{"op": "add", "path": "/l/-", "value": deep(240, 1)}] * 200),
    ),
    "tests of a large value": (
        {"l": OBJECTS[:600]},
        json_patch(*[{"op": "test", "path": "/l", "value": OBJECTS[:600]}] * 50),
    ),
    "a permuted array of numbers": ({"l": LONG}, whole(l=shuffled(LONG))),
    "a permuted array of objects": ({"l": OBJECTS}, whole(l=shuffled(OBJECTS))),
    "arrays in arrays": ({"l": arrays(1, 60, 60, 30)}, whole(l=arrays(2, 60, 60, 30))),
    "many small arrays": (
        {"l": {f"k{index}": arrays(index, 30) for index in range(6_000)}},
        whole(l={f"k{index}": arrays(-index, 30) for index in range(6_000)}),
    ),
    "many members changed": ({"data": MEMBERS}, whole(data=dict.fromkeys(MEMBERS, 1))),
    "many members renamed": ({"data": MEMBERS}, whole(data={f"{name}'": 0 for name in MEMBERS})),
    "many members of the object itself removed": (MEMBERS, whole()),
    "deep arrays that differ at the bottom": (
        {"l": [deep(200, 1)] * 200},
        whole(l=[deep(200, 2)] * 200),
    ),
    "a merge patch with many members": ({"data": MEMBERS}, merge(data=dict.fromkeys(MEMBERS, 1))),
    "a merge patch with deep members": ({}, merge(**{f"m{index}": CHAIN for index in range(200)})),
}
KUBERNETES = ["copies that double", "adds at the head of a long array", "long pointers, as many as allowed"]


class TooMuchWorkError(Exception):
    """More calls than allowed."""


def counted(work, most=MOST_CALLS):
    """What ``work`` returns, if it makes at most so many calls."""
    left = most

    def called(_frame, event, _argument):
        nonlocal left
        if event in {"call", "c_call"}:
            left -= 1
            if left < 0:
                sys.setprofile(None)
                raise TooMuchWorkError

    sys.setprofile(called)
    try:
        return work()
    finally:
        sys.setprofile(None)


def everything(before, kind, content, writes):
    """All that the engine does with one answer: apply, compare, check, attribute, encode."""
    scope = Scope(visibility=None, writes=writes, sub_resource="", limits=DEFAULT_LIMITS, steps=Steps())
    applied = finished(apply_change(before, Change(kind=kind, content=content), scope))
    if isinstance(applied, Failure):
        return applied, b"", ()
    patch = encode_patch(applied.operations)
    ownership = FieldOwnership(before)
    ownership.record(0, 0, applied.operations, applied.after)
    ownership.overwritten(difference(applied.after, before), author=1)
    return applied, patch, ownership.changes(applied.after)


def check(before, kind, content, writes=Writes.EVERYTHING):
    """The work is bounded, and the difference, if there is one, leads to the object."""
    before = msgspec.json.decode(msgspec.json.encode(BASE | before))
    text = msgspec.json.encode(content)
    applied, patch, fields = counted(lambda: everything(before, kind, text, writes))
    if isinstance(applied, AppliedChange):
        result = before
        for operation in applied.operations:
            result = apply_json_patch(result, encode_patch([operation]))
        assert equal(result, applied.after)
        assert len(fields) <= len(patch)
    else:
        assert applied.reason in {Reason.INVALID_PATCH, Reason.WRITE_SCOPE}
        assert len(applied.message) < 1_000
    return applied


@pytest.mark.parametrize("name", ATTACKS)
def test_an_answer_causes_little_work(name):
    """An answer within the limits is applied, compared and attributed with little work, or it is refused by name."""
    before, (kind, content) = ATTACKS[name]
    check(before, kind, content)


@pytest.mark.parametrize("name", KUBERNETES)
def test_a_webhooks_patch_causes_little_work(name):
    """That holds for a patch in the dialect of kube-apiserver."""
    before, (_, content) = ATTACKS[name]
    check(before, ChangeKind.KUBERNETES_PATCH, content)


@pytest.mark.parametrize(
    "name", ["many members changed", "arrays in arrays", "many empty arrays for many empty objects"]
)
def test_the_check_of_what_a_policy_may_write_causes_little_work(name):
    """A policy that may write labels and has changed everything is refused with little work."""
    before, (kind, content) = ATTACKS[name]
    writes = Writes(granted=PointerSet([("metadata", "labels"), ("data", "*", "a")]))
    assert check(before, kind, content, writes).reason is Reason.WRITE_SCOPE


@pytest.mark.parametrize(("number", "size"), [(1.7976931348623157e308, 1_000), (10**4_299, 20)])
def test_numbers_are_charged_when_they_are_copied(number, size):
    """In the dialect of kube-apiserver a copy of an array that has changed is parsed again."""
    change = {"op": "replace", "path": "/m/0", "value": 0}
    copies = [{"op": "copy", "from": "/m", "path": "/l/-"}]
    before = {"l": [], "m": [number] * size}
    assert isinstance(check(before, ChangeKind.KUBERNETES_PATCH, [change, *copies * 4]), AppliedChange)
    refused = check(before, ChangeKind.KUBERNETES_PATCH, [change, *copies * 23])
    assert refused.reason is Reason.INVALID_PATCH
    assert "may copy 200000 values in all" in refused.message


def test_digits_in_texts_are_not_charged_when_they_are_copied():
    """A text of a version for each line is a text."""
    before = {"l": [], "m": ["1.7e1," * 50_000]}
    change = {"op": "add", "path": "/m/-", "value": "x"}
    copy = {"op": "copy", "from": "/m", "path": "/l/-"}
    assert isinstance(check(before, ChangeKind.KUBERNETES_PATCH, [change, copy]), AppliedChange)


@pytest.mark.parametrize("name", ["floats that take long to read", "integers that take long to read"])
def test_numbers_are_charged_before_they_are_read(name):
    """A number that takes as long as many values counts as many."""
    before, (kind, content) = ATTACKS[name]
    refused = check(before, kind, content)
    assert refused.reason is Reason.INVALID_PATCH
    assert "at most 200000 values" in refused.message


def test_a_label_beside_a_million_changes_is_one_operation():
    """What one member costs does not make the others less precise."""
    before = {"data": dict(MEMBERS), "metadata": {"labels": {"a": "1", "b": "1"}}, "x": [1, 2]}
    after = {"data": dict.fromkeys(MEMBERS, 1), "metadata": {"labels": {"a": "2", "b": "1"}}, "x": [0, 1, 2]}
    assert [(each.op, each.path) for each in difference(before, after)] == [
        ("replace", "/data"),
        ("replace", "/metadata/labels/a"),
        ("add", "/x/0"),
    ]


@pytest.mark.property
@SOME
@given(objects(), SEEDS, st.integers(0, 200))
def test_with_any_number_of_steps_the_difference_leads_from_before_to_after(before, random, left):
    """However early the steps end, the patch applies, gives the object, and is empty if and only if it is equal."""
    after = before
    for _ in range(random.randrange(6)):
        after = edited(random, after)
    operations = difference(before, after, Steps(left))
    assert strictly_equal(apply_json_patch(before, encode_patch(operations)), after)
    assert (operations == ()) is equal(before, after)


@pytest.mark.property
@SOME
@given(objects(), SEEDS, st.integers(0, 200), st.integers(0, 200))
def test_with_any_number_of_steps_the_changes_lead_to_the_final_object(original, random, recorded, compared):
    """However early the steps end, the changes of several policies lead to the object, and each has a writer."""
    ownership, now = FieldOwnership(original, Steps(recorded)), original
    for order in range(random.randrange(1, 5)):
        after = edited(random, now)
        after = after if isinstance(after, dict) else {"a": after}
        operations = difference(now, after, Steps(compared))
        ownership.overwritten(operations, author=order)
        ownership.record(order, order, operations, after)
        now = after
    changes = list(sequence_diff(original, now, ownership._root, Steps(compared)))
    operations = [Operation(op=each.op, path=format_pointer(each.path), value=each.value) for each in changes]
    assert strictly_equal(apply_json_patch(original, encode_patch(operations)), now)
    assert all(0 <= field.order < 4 for field in ownership.changes(now))


def test_a_write_that_is_recorded_whole_still_conflicts():
    """A policy that writes below what another one wrote as a whole, without steps for its leaves, conflicts with it."""
    original = {"a": {"x": {"y": 1}}, "b": 1}
    once = {"a": {"x": {"y": 2, "z": [1]}}, "b": 1}
    ownership = FieldOwnership(original, Steps(0))
    ownership.record(0, 0, (Operation(op="replace", path="/a", value=once["a"]),), once)
    twice = {"a": {"x": {"y": 3, "z": [1]}}, "b": 2}
    found = ownership.overwritten(difference(once, twice), author=1)
    assert [(each.pointer, each.authors) for each in found] == [("/a/x/y", {0})]
    ownership.record(1, 1, difference(once, twice), twice)
    assert {each.pointer: each.order for each in ownership.changes(twice)}["/b"] == 1


HOSTILE = {
    "plain": "x",
    "quotes": '"',
    "control characters": "\x01",
    "commas": ",",
    "brackets": "[",
    "digits": "1",
    "backslashes": "\\",
    "emoji": "😀",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    ("kind", "around"),
    [
        (ChangeKind.JSON_PATCH, b'[{"op":"add","path":"/x","value":%s}]'),
        (ChangeKind.KUBERNETES_PATCH, b'[{"op":"add","path":"/x","value":%s}]'),
        (ChangeKind.MERGE_PATCH, b'{"x":%s}'),
        (ChangeKind.OBJECT, b'{"x":%s}'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_largest_text_is_counted_in_slices_and_decoded_once(name, kind, around, monkeypatch):
    """Whatever its characters look like; none of the steps counts all of it again, or writes it to compare it."""
    each = HOSTILE[name]
    value = each * (DEFAULT_LIMITS.object_bytes // len(json.dumps(each, ensure_ascii=False).encode()) // 2)
    content = around % json.dumps(value, ensure_ascii=False).encode()
    looked_at, most_charged, structure = [], depth.most_charged, depth._structure
    monkeypatch.setattr(depth, "most_charged", lambda text: looked_at.append(len(text)) or most_charged(text))
    monkeypatch.setattr(depth, "_structure", lambda text, *rest: looked_at.append(len(text)) or structure(text, *rest))
    monkeypatch.setattr(kubernetes, "encoded", None)
    work = apply_change(
        {},
        Change(kind=kind, content=content),
        Scope(visibility=None, writes=Writes.EVERYTHING, sub_resource="", limits=DEFAULT_LIMITS, steps=Steps()),
    )
    slices, applied = 0, None
    while applied is None:
        try:
            next(work)
            slices += 1
        except StopIteration as done:
            applied = done.value
    assert applied.after["x"] == value
    assert max(looked_at) <= 1_048_576
    assert slices > len(content) // 1_048_576


@pytest.mark.parametrize("around", [b"[%s]", b"[" * 200 + b"%s" + b"]" * 200, b"%s".join([b"[" + b"[]," * 300, b"]"])])
def test_a_text_with_fewer_bytes_than_values_are_allowed_is_applied(around):
    """Whatever its numbers are charged: it can have no more values than bytes."""
    value = around % b",".join([b"0.5"] * 45_000)
    content = b'[{"op":"add","path":"/x","value":%s}]' % value
    assert len(content) < DEFAULT_LIMITS.values
    scope = Scope(visibility=None, writes=Writes.EVERYTHING, sub_resource="", limits=DEFAULT_LIMITS, steps=Steps())
    applied = finished(apply_change({}, Change(kind=ChangeKind.JSON_PATCH, content=content), scope))
    assert applied.after == apply_json_patch({}, content) == {"x": json.loads(value)}
