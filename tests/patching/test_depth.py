"""The depth of a text is known without parsing it, and exactly."""

import contextlib
import json
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import depth
from gateway.depth import Survey, bounded, most_charged, surveyed, too_deep, value_too_deep

STRINGS = st.text(alphabet='"\\[]{}a', max_size=8)
DOCUMENTS = st.recursive(
    STRINGS | st.none(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(STRINGS, inner, max_size=6),
    max_leaves=40,
)


def depth_of(value):
    """How many levels a value has, by walking it."""
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@pytest.mark.property
@given(DOCUMENTS, st.integers(1, 3), st.integers(1, 40))
def test_it_is_exact_for_json(value, copies, piece):
    """A JSON text is too deep for every limit below its depth and for none from its depth on, wherever it is cut."""
    whole = [value] * copies
    text = json.dumps(whole).encode()
    with patch.object(depth, "_PIECE", piece), patch.object(depth, "_SLICE", piece):
        assert [too_deep(text, limit) for limit in range(12)] == [depth_of(whole) > limit for limit in range(12)]
    assert [value_too_deep(whole, limit) for limit in range(12)] == [depth_of(whole) > limit for limit in range(12)]


def values_of(value):
    """How many values and names of members a value has, by walking it; a container that is empty counts as one more."""
    if isinstance(value, dict):
        return sum(2 + values_of(each) for each in value.values()) if value else 1
    return sum(1 + values_of(each) for each in value) + (not value) if isinstance(value, list) else 0


def survey(text, limit):
    """The result of ``surveyed``, and how many slices it took."""
    return sliced(surveyed(text, limit))


def sliced(steps):
    """The result of work in slices, and how many there were."""
    slices = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, slices
        slices += 1


@pytest.mark.property
@given(DOCUMENTS, st.integers(1, 3), st.integers(1, 40))
def test_a_survey_is_exact_for_json(value, copies, piece):
    """Values and depth are those of the parsed text, wherever it is sliced."""
    whole = [value] * copies
    text = json.dumps(whole).encode()
    with patch.object(depth, "_SLICE", piece):
        for limit in range(12):
            found, slices = survey(text, limit)
            assert found == Survey(values_of(whole), depth_of(whole) > limit)
            assert slices >= len(text) // (piece + 1)


@pytest.mark.property
@given(DOCUMENTS, st.integers(1, 3), st.integers(1, 40), st.integers(0, 60))
def test_a_bound_decides_as_the_survey_does(value, copies, piece, room):
    """Whether there are too many values, or levels, is the same; and no slice is longer than it may be."""
    text = json.dumps([value] * copies).encode()
    with patch.object(depth, "_PASS", piece), patch.object(depth, "_SLICE", piece):
        for limit in range(12):
            found, slices = sliced(bounded(text, room, limit))
            exact, _ = survey(text, limit)
            assert (found.values > room, found.too_deep) == (exact.values > room, exact.too_deep)
            assert slices >= len(text) // (piece + 1)


@pytest.mark.parametrize(
    ("number", "charge"),
    [
        (b"1", 1),
        (b"-1234567890123456789", 1),
        (b"0.5", 6),
        (b"1e5", 4),
        (b"-1.5E+300", 9),
        (b"1" * 40, 21),
        (b"true", 1),
        (b"false", 1),
        (b'"1.7976931348623157e+308"', 1),
        (b'"%s"' % (b"7" * 40), 1),
    ],
)
def test_a_number_is_charged_for_what_it_costs_to_read(number, charge):
    """A float and a long integer count as several values, digits in strings do not."""
    text = b"[%s]" % b",".join([number] * 1_000)
    assert survey(text, 256) == (Survey(charge * 1_000, too_deep=False), 1)
    assert most_charged(text) >= charge * 1_000


@pytest.mark.property
@given(st.lists(st.tuples(st.sampled_from([*map(bytes, zip(b'[]{}"\\,:a1')), b'{"a":', b"[[],"]), st.integers(1, 300))))
def test_a_parser_never_meets_more_than_the_limit(parts):
    """Whatever the bytes are, nothing is raised, and what is not too deep does not exhaust a parser's recursion."""
    text = b"".join(part * times for part, times in parts)
    if not too_deep(text, 200):
        with contextlib.suppress(msgspec.DecodeError):
            msgspec.json.decode(text)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (b"1", 0),
        (b"[]", 1),
        (b'{"a":{}}', 2),
        (b"[[],[],[]]", 2),
        (b'"[[[["', 0),
        (b'"\\"[[[["', 0),
        (b'["\\\\",[]]', 2),
        (b'["\\\\\\"[",[]]', 2),
        (b'{"[":"]","{":[1]}', 2),
    ],
)
def test_brackets_in_strings_do_not_nest(text, levels):
    """A bracket counts if it is outside a string, whatever backslashes stand before the quotes."""
    assert [too_deep(text, limit) for limit in range(4)] == [levels > limit for limit in range(4)]


@pytest.mark.parametrize("limit", [255, 256, 257])
def test_the_limit_itself_is_allowed(limit):
    """256 levels are not deeper than 256, with thousands of brackets beside them."""
    text = b"[" + b"[],{}," * 2_000 + b"[" * 255 + b"]" * 255 + b"]"
    assert too_deep(text, limit) is (limit < 256)


def test_ten_million_brackets_are_no_problem():
    """A text of brackets alone is refused, and one that stays just below the limit is not, without recursion."""
    assert too_deep(b"[" * 10_000_000, 256)
    assert not too_deep(b"[" * 255 + b"[]," * 300_000 + b"[]" + b"]" * 255, 256)
