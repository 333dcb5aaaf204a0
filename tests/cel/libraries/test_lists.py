"""Lists: Kubernetes' own library, cel-go's extension, sets."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values.containers import NONE, Optional
from gateway.cel.values.durations import Duration
from gateway.cel.values.numbers import Uint
from tests.cel.evaluation import error, value

numbers = st.lists(st.integers(-9, 9), max_size=8)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[1, 2, 2].isSorted()", True),
        ("[2, 1].isSorted()", False),
        ("['a', 'b'].isSorted()", True),
        ("[false, true].isSorted()", True),
        ("[].map(e, 1).isSorted()", True),
        ("[1, 2].sum()", 3),
        ("[1u, 2u].sum()", Uint(3)),
        ("[1.5, 2.5].sum()", 4.0),
        ("[duration('1s'), duration('2s')].sum()", Duration(3 * 10**9)),
        ("[].map(e, 1).sum()", 0),
        ("[1, 3, 2].max()", 3),
        ("[2, 1, 3].min()", 1),
        ("['b', 'a'].min()", "a"),
        ("[1, 2, 1].indexOf(1)", 0),
        ("[1, 2, 1].lastIndexOf(1)", 2),
        ("[1].indexOf(5)", -1),
        ("[1].lastIndexOf(5)", -1),
        ("[1, 2, 3].slice(1, 3)", [2, 3]),
        ("[1, 2, 3].slice(1, 1)", []),
        ("[[1], [2, 3]].flatten()", [1, 2, 3]),
        ("dyn([[[1]], [[2]]]).flatten(2)", [1, 2]),
        ("dyn([[[1]]]).flatten(0)", [[[1]]]),
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("['b', 'a'].sort()", ["a", "b"]),
        ("[].map(e, 1).sort()", []),
        ("lists.range(3)", [0, 1, 2]),
        ("lists.range(0)", []),
        ("lists.range(-5)", []),
        ("[1, 2, 3].reverse()", [3, 2, 1]),
        ("[1, 2, 1].distinct()", [1, 2]),
        ("[dyn(1), dyn(1.0), dyn(1u)].distinct().size()", 1),
        ("[1, 2].first()", Optional(1)),
        ("[1, 2].last()", Optional(2)),
        ("[].first()", NONE),
        ("[].last()", NONE),
        ("sets.contains([1, 2], [2])", True),
        ("sets.contains([1], [2])", False),
        ("sets.contains([1], [])", True),
        ("sets.equivalent([1, 1, 2], [2, 1])", True),
        ("sets.equivalent([1], [1, 2])", False),
        ("sets.intersects([1, 2], [2, 3])", True),
        ("sets.intersects([1], [2])", False),
        ("sets.intersects([], [])", False),
    ],
)
def test_what_a_function_comes_to(expression, expected):
    """For lists of numbers, texts and others."""
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[].map(e, 1).max()", "max called on empty list"),
        ("[].map(e, 1).min()", "min called on empty list"),
        ("[1].slice(-1, 1)", "cannot slice(-1, 1), negative indexes not supported"),
        ("[1].slice(1, 0)", "cannot slice(1, 0), start index must be less than or equal to end index"),
        ("[1].slice(0, 2)", "cannot slice(0, 2), list is length 1"),
        ("[[1]].flatten(-1)", "level must be non-negative"),
        ("a.flatten()", "no such overload: int.flatten()"),
        ("a.sort()", "no such overload: sort"),
        ("b.sort()", "list elements must have the same type"),
        ("c.sort()", "list elements must be comparable"),
        ("x.max()", "no such overload"),
        ("b.sum()", "no such overload"),
        ("x.isSorted()", "no such overload"),
        ("[9223372036854775807, 1].sum()", "integer overflow"),
        ("y.sum()", "no such overload"),
        ("z.sortBy(e, e)", "no such overload: @sortByAssociatedKeys"),
        ("z.nope.sortBy(e, e)", "no such key: nope"),
        ("lists.range(100000000)", "operation cancelled: actual cost limit exceeded"),
    ],
)
def test_what_cannot_be_done_is_an_error(expression, message):
    """In cel-go's words."""
    assert error(expression, a=1, b=[1, "x"], c=[[1], [2]], x=[1, None], y=[1, True], z={"k": 1}) == message


def test_pairs_without_an_order_change_nothing():
    """NaN is neither less nor greater."""
    assert value("a.isSorted()", a=[math.nan, 1.0]) is True
    assert value("a.max()", a=[1.0, math.nan]) == 1.0
    assert value("a.sort().size()", a=[2.0, math.nan, 1.0]) == 3


def test_an_error_of_a_comparison_is_no_equality():
    """A quantity cannot be compared with a number."""
    assert value("[quantity('1')].indexOf(a)", a=1) == -1


@pytest.mark.property
@given(numbers)
def test_sorting_is_that_of_python(values):
    """And a sorted list is sorted."""
    assert value("a.sort()", a=values) == sorted(values)
    assert value("a.sort().isSorted()", a=values) is True
    assert value("a.isSorted()", a=values) is (values == sorted(values))


@pytest.mark.property
@given(numbers)
def test_sorting_by_a_key_keeps_the_order_of_equal_ones(values):
    """It is stable."""
    assert value("a.sortBy(e, e * e)", a=values) == sorted(values, key=lambda each: each * each)


@pytest.mark.property
@given(numbers)
def test_turning_round_twice_changes_nothing(values):
    """And the first becomes the last."""
    assert value("a.reverse().reverse() == a", a=values) is True
    assert value("a.reverse().first() == a.last()", a=values) is True


@pytest.mark.property
@given(numbers)
def test_distinct_elements_are_a_set_in_their_first_order(values):
    """Equivalent to what they came from."""
    assert value("a.distinct()", a=values) == list(dict.fromkeys(values))
    assert value("sets.equivalent(a, a.distinct())", a=values) is True


@pytest.mark.property
@given(numbers, numbers)
def test_sets_are_those_of_python(one, other):
    """Of integers."""
    assert value("sets.contains(a, b)", a=one, b=other) is (set(one) >= set(other))
    assert value("sets.equivalent(a, b)", a=one, b=other) is (set(one) == set(other))
    assert value("sets.intersects(a, b)", a=one, b=other) is bool(set(one) & set(other))


@pytest.mark.property
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8))
def test_extremes_and_sums_are_those_of_python(values):
    """Of a list that has elements."""
    assert value("a.max()", a=values) == max(values)
    assert value("a.min()", a=values) == min(values)
    assert value("a.sum()", a=values) == sum(values)


@pytest.mark.property
@given(numbers, st.integers(-9, 9))
def test_an_index_is_where_the_element_is(values, item):
    """The first and the last; -1 if there is none."""
    expected = values.index(item) if item in values else -1
    assert value("a.indexOf(b)", a=values, b=item) == expected
    last = len(values) - 1 - values[::-1].index(item) if item in values else -1
    assert value("a.lastIndexOf(b)", a=values, b=item) == last


@pytest.mark.property
@given(st.lists(numbers, max_size=4))
def test_flattening_joins_the_lists(lists):
    """One level."""
    assert value("a.flatten()", a=lists) == [each for inner in lists for each in inner]
