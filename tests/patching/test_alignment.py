"""Alignment: a complete pairing in order, the cheapest where it can be afforded, and bounded where it cannot."""

import copy
from itertools import combinations
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.patching import alignment
from gateway.patching.alignment import Aligner
from gateway.patching.application import apply_json_patch
from gateway.patching.difference import difference, encode_patch
from gateway.patching.steps import Steps
from gateway.patching.value_interner import ValueInterner
from tests.patching.values import SEEDS, SOME, edited, strictly_equal, values

FEW = st.lists(st.sampled_from(["a", "b", "c", 1, None]), max_size=8)
LIMITS = [
    {"_ROUNDS": 4},
    {"_SMALL": 0},
    {"_SMALL": 0, "_ROUNDS": 0},
]
STEPS_LEFT = st.sampled_from([0, 5, 20, 50, 100, 200, 500, 100_000])


@pytest.mark.property
@SOME
@given(st.lists(values(), max_size=8), SEEDS, st.sampled_from(LIMITS), STEPS_LEFT)
def test_each_element_has_its_place(before, random, limits, left):
    """Whatever limits force, each index of both arrays stands in exactly one pair, and both rise."""
    after = before
    for _ in range(random.randrange(5)):
        after = edited(random, after)
    if not isinstance(after, list):
        after = [after]
    with patch.multiple(alignment, **limits):
        pairs = Aligner(Steps(left)).align(before, after)
        operations = difference(before, after, Steps(left))
    assert [row for row, _ in pairs if row is not None] == list(range(len(before)))
    assert [column for _, column in pairs if column is not None] == list(range(len(after)))
    assert (None, None) not in pairs
    assert strictly_equal(apply_json_patch(before, encode_patch(operations)), after)


def longest_common(one, other):
    """The length of the longest common subsequence, by its definition."""
    for size in range(min(len(one), len(other)), 0, -1):
        if set(combinations(one, size)) & set(combinations(other, size)):
            return size
    return 0


@pytest.mark.property
@given(FEW, FEW)
def test_short_arrays_keep_all_that_can_be_kept(before, after):
    """Of two short arrays of simple values the longest common subsequence stays."""
    pairs = Aligner().align(before, after)
    kept = [row for row, column in pairs if row is not None and column is not None and before[row] == after[column]]
    assert len(kept) == longest_common(before, after)


@pytest.mark.property
@given(st.lists(st.integers(0, 30), max_size=10, unique=True))
def test_the_longest_rise_is_the_longest(columns):
    """The run of pairs that is kept rises, and no longer one does."""
    run = alignment._longest_rise(list(enumerate(columns)))
    kept = [column for _, column in run]
    assert kept == sorted(kept)
    assert all(columns[row] == column for row, column in run)
    assert len(kept) == longest_common(columns, sorted(columns))


@pytest.mark.property
@SOME
@given(values(), values())
def test_equal_values_have_the_same_number(one, other):
    """Two values have the same number exactly if they are equal as JSON values; a copy has that of its original."""
    numbering = ValueInterner(Steps())
    assert (numbering.number(one) == numbering.number(other)) is strictly_equal(one, other)
    assert numbering.number(copy.deepcopy(one)) == numbering.number(one)


def test_without_steps_elements_are_paired_by_position():
    """Where too many elements differ to be aligned, the first becomes the first, and only the rest is added."""
    before = {"a": [1, 2, 3]}
    after = {"a": [0, 1, 2, 3, 4]}
    operations = difference(before, after, Steps(70))
    assert [(operation.op, operation.path) for operation in operations] == [
        ("replace", "/a/0"),
        ("replace", "/a/1"),
        ("replace", "/a/2"),
        ("add", "/a/3"),
        ("add", "/a/4"),
    ]


def test_the_limits_hold_for_all_arrays_together():
    """Arrays share the steps: where they are used up by the first, the second is paired by position."""
    array, longer = [1, 2, 3], [0, 1, 2, 3, 4]
    operations = difference({"a": array, "b": array}, {"a": longer, "b": list(longer)}, Steps(120))
    assert [operation.op for operation in operations if operation.path.startswith("/a")] == ["add"] * 2
    assert [operation.op for operation in operations if operation.path.startswith("/b")] == ["replace"] * 3 + [
        "add"
    ] * 2
