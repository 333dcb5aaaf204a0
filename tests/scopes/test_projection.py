"""The shown part of a value: against the model, and by the sentences that it has to keep."""

import copy
import json

import pytest
from hypothesis import given

from gateway.bounds import DEEPEST
from gateway.scopes.pointer_set import ANY, PointerSet
from gateway.scopes.projection import NOTHING, shown_part
from tests.scopes.model import SETS, VALUES, found, inside, part


def as_text(value):
    """A text for a value: 1 is not True, and order counts."""
    return "NOTHING" if value is NOTHING else json.dumps(value)


def availability(value, pointer):
    """What stands at a pointer."""
    for token in pointer:
        value = value[token] if isinstance(value, dict) else value[int(token)]
    return value


@pytest.mark.property
@given(VALUES, SETS)
def test_the_part_is_the_model_s(value, patterns):
    """The same members in the same order, the same elements, the same blanks."""
    assert as_text(shown_part(value, PointerSet(patterns))) == as_text(part(value, patterns))


@pytest.mark.property
@given(VALUES, SETS)
def test_every_declared_value_stands_where_it_stood(value, patterns):
    """Its pointer means in the part what it means in the whole; it is shared, not copied."""
    shown = shown_part(value, PointerSet(patterns))
    for pointer, child in found(value):
        if inside(pointer, patterns):
            assert availability(shown, pointer) is child


@pytest.mark.property
@given(VALUES, SETS)
def test_arrays_keep_length_and_nothing_is_made_up(value, patterns):
    """Whatever stands in the part stands in the whole: a container of its kind and, an array, of its length."""
    shown = shown_part(value, PointerSet(patterns))
    for pointer, child in found(shown) if shown is not NOTHING else []:
        whole = availability(value, pointer)
        assert child is None or type(child) is type(whole)
        if isinstance(child, list) and not inside(pointer, patterns) and child:
            assert len(child) == len(whole)


@pytest.mark.property
@given(VALUES, SETS)
def test_what_is_not_declared_cannot_be_found(value, patterns):
    """With every other text and number replaced, the part is the same."""
    before = as_text(shown_part(value, PointerSet(patterns)))
    changed = copy.deepcopy(value)
    for pointer, child in found(changed):
        if pointer and not isinstance(child, (dict, list)) and not inside(pointer, patterns):
            above = availability(changed, pointer[:-1])
            above[pointer[-1] if isinstance(above, dict) else int(pointer[-1])] = "marked"
    assert as_text(shown_part(changed, PointerSet(patterns))) == before


@pytest.mark.property
@given(VALUES, SETS, SETS)
def test_the_narrow_part_of_a_wide_part_is_the_narrow_part(value, narrow, more):
    """Wider places hide nothing that narrower ones show; once more with the same places changes nothing."""
    wide = shown_part(value, PointerSet([*narrow, *more]))
    again = NOTHING if wide is NOTHING else shown_part(wide, PointerSet(narrow))
    assert as_text(again) == as_text(shown_part(value, PointerSet(narrow)))


@pytest.mark.property
@given(VALUES, SETS)
def test_the_value_is_never_changed(value, patterns):
    """Others share it."""
    before = as_text(value)
    shown_part(value, PointerSet(patterns))
    assert as_text(value) == before


@pytest.mark.parametrize(
    ("value", "pointer", "expected"),
    [
        ({"a": None}, "/a", {"a": None}),
        ({"a": None}, "/a/b", {}),
        ({"a": "text"}, "/a/0", {}),
        ({"a": {}}, "/a/b", {"a": {}}),
        ({"a": []}, "/a/*/b", {"a": []}),
        ({"a": {"b": 1}}, "/a/c", {"a": {}}),
        ({"b": 1}, "/a/c", {}),
        ({"a": [1, {"x": 1}, [1], "t", None]}, "/a/7", {"a": [None, {}, [], None, None]}),
        ({"a": [{"x": 1, "y": 2}, {"x": 3}]}, "/a/1/x", {"a": [{}, {"x": 3}]}),
        ({"a": [{"x": 1, "y": 2}, {"x": 3}, 4]}, "/a/*/x", {"a": [{"x": 1}, {"x": 3}, None]}),
        ({"a": [1, 2]}, "/a/00", {"a": [None, None]}),
        ({"a": [1, 2]}, "/a/-", {"a": [None, None]}),
        ({"a": [1, 2]}, "/a/-1", {"a": [None, None]}),
        ({"a": [[1, 2], [3]]}, "/a/*/0", {"a": [[1, None], [3]]}),
        ({"a": {"0": 1, "00": 2}}, "/a/00", {"a": {"00": 2}}),
        ({"a": {"x": {"k": 1}, "y": 2, "z": []}}, "/a/*/k", {"a": {"x": {"k": 1}, "z": []}}),
    ],
)
def test_the_corners(value, pointer, expected):
    """Nulls, scalars on the way, empty containers, indexes that are none, ``*`` over members and elements."""
    assert shown_part(value, PointerSet([tuple(pointer[1:].split("/"))])) == expected


def test_without_places_a_container_is_an_empty_one():
    """What a worker that is shown nothing of an object can compare its own with."""
    assert shown_part({"a": 1}, PointerSet()) == {}
    assert shown_part("text", PointerSet()) is NOTHING


@pytest.mark.parametrize("token", ["a", ANY])
def test_the_deepest_value_that_is_let_in_is_shown(token):
    """One frame for each level leaves room for the caller."""
    value = "text"
    for _ in range(DEEPEST):
        value = {"a": value, "b": 1}
    shown = shown_part(value, PointerSet([(token,) * DEEPEST]))
    assert availability(shown, ("a",) * DEEPEST) == "text"
    array = "text"
    for _ in range(DEEPEST):
        array = [array]
    assert availability(shown_part(array, PointerSet([("*",) * DEEPEST])), ("0",) * DEEPEST) == "text"
