"""``==``, the order of values, and membership."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.libraries.quantities import QUANTITIES
from gateway.cel.values import types
from gateway.cel.values.containers import NONE, Optional, made_of
from gateway.cel.values.durations import Duration
from gateway.cel.values.equality import comparable, compare, contains, equal
from gateway.cel.values.faults import Fault
from gateway.cel.values.numbers import Uint
from gateway.cel.values.timestamps import Timestamp
from tests.cel.evaluation import error, value

QUANTITY = next(overload.call for overload in QUANTITIES.overloads if overload.function == "quantity")


def nothing(steps):
    """Effort that is not counted."""


def scalars(*, nan):
    return (
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.integers(0, 2**64 - 1).map(Uint)
        | st.floats(allow_nan=nan)
        | st.text(max_size=4)
        | st.binary(max_size=4)
        | st.integers(-(2**63), 2**63 - 1).map(Duration)
        | st.builds(Timestamp, st.integers(-1000, 1000), st.integers(0, 999), st.integers(-3600, 3600))
    )


def values_of(leaves):
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(max_size=2), inner, max_size=3)
            | st.lists(st.tuples(st.integers(0, 5) | st.booleans(), inner), max_size=3).map(made_of)
            | inner.map(Optional)
        ),
        max_leaves=10,
    )


values, ordinary = values_of(scalars(nan=True)), values_of(scalars(nan=False))


@pytest.mark.property
@given(values, values)
def test_equality_is_symmetric(one, other):
    """Whatever is compared with whatever."""
    assert equal(one, other, nothing) == equal(other, one, nothing)


@pytest.mark.property
@given(ordinary)
def test_a_value_equals_itself_unless_nan_is_in_it(value):
    """NaN equals nothing."""
    assert equal(value, value, nothing)


@pytest.mark.property
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_a_list_equals_its_copy(value):
    """By value, however deep."""
    assert equal(value, json.loads(json.dumps(value)), nothing)


@pytest.mark.property
@given(values, values)
def test_every_comparison_ends_in_true_or_false(one, other):
    """Of values without Kubernetes' own types there is no error."""
    assert equal(one, other, nothing) in {True, False}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (1, Uint(1), True),
        (Uint(1), 1.0, True),
        (True, 1, False),
        (0, False, False),
        ("a", b"a", False),
        (None, None, True),
        (None, 0, False),
        (0, None, False),
        (math.nan, math.nan, False),
        (0.0, -0.0, True),
        (2**70, 2.0**70, True),
        ([1], [1.0], True),
        ([1], [1, 2], False),
        ([True], [1], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": None}, {"b": None}, False),
        ({}, [], False),
        (made_of([(1, "x")]), made_of([(Uint(1), "x")]), True),
        (made_of([(1, "x")]), {"1": "x"}, False),
        (NONE, NONE, True),
        (Optional(1), NONE, False),
        (Optional(None), NONE, False),
        (Optional(1), Optional(1.0), True),
        (Optional(1), 1, False),
        (types.INT, types.INT, True),
        (types.INT, types.UINT, False),
        (types.LIST, types.list_of(types.INT), True),
        (Timestamp(1, 0, 0), Timestamp(1, 0, 3600), True),
        (Timestamp(1, 0), Timestamp(1, 1), False),
        (Timestamp(1, 0), 1, False),
        (Duration(1), Duration(1), True),
        (Duration(1), 1, False),
    ],
)
def test_what_equals_what(one, other, expected):
    """Values of different kinds differ, numbers of different kinds do not."""
    assert equal(one, other, nothing) is expected
    assert equal(other, one, nothing) is expected


def test_comparing_a_quantity_with_something_else_is_an_error():
    """As in the API server; with null it is just different."""
    with pytest.raises(Fault, match="no such overload"):
        equal(QUANTITY("1"), 1, nothing)
    assert equal(QUANTITY("1"), None, nothing) is False


@pytest.mark.parametrize("expression", ["ip('::1')", "cidr('::/0')", "url('/')", "semver('1.0.0')", "format.uuid()"])
def test_kubernetes_own_types_cannot_be_compared_with_others(expression):
    """Only with themselves."""
    assert error(f"{expression} == a", a=1) == "no such overload"
    assert value(f"{expression} == {expression} && dyn({expression}) != a", a=1) is True


def test_an_error_within_a_list_is_no_difference():
    """cel-go stops at the first element that is different, and an error is not."""
    assert equal([QUANTITY("1")], [1], nothing) is True
    assert equal([QUANTITY("1"), 1], [1, 2], nothing) is False


# ---------------------------------------------------------------------------------------------------- order
@pytest.mark.property
@given(st.text(max_size=6), st.text(max_size=6))
def test_texts_have_the_order_of_their_bytes(one, other):
    """That of UTF-8, which is that of code points."""
    assert compare(one, other, nothing) == (one.encode() > other.encode()) - (one.encode() < other.encode())


@pytest.mark.property
@given(st.data())
def test_the_order_the_other_way_round_is_the_opposite(data):
    """For two values of the same kind."""
    kind = data.draw(
        st.sampled_from([st.booleans(), st.text(max_size=4), st.binary(max_size=4), st.floats(allow_nan=False)])
    )
    one, other = data.draw(kind), data.draw(kind)
    assert compare(one, other, nothing) == -compare(other, one, nothing)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a", 1), (1, "a"), (True, 1), (1, True), (b"a", "a"), (Duration(1), 1), (Timestamp(0, 0), Duration(0))],
)
def test_values_of_different_kinds_have_no_order(one, other):
    """That is an error, not a false."""
    with pytest.raises(Fault, match="no such overload"):
        compare(one, other, nothing)


@pytest.mark.parametrize(("one", "other"), [(math.nan, 1), (1, math.nan), (math.nan, math.nan), (math.nan, "a")])
def test_nan_has_no_order(one, other):
    """Not even between itself and something else."""
    with pytest.raises(Fault, match="NaN values cannot be ordered"):
        compare(one, other, nothing)


def test_timestamps_have_the_order_of_their_instants():
    """Whatever zone they are written in."""
    assert compare(Timestamp(1, 0, 3600), Timestamp(2, 0, 0), nothing) == -1


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, True), ("a", True), (True, True), (b"", True), (Duration(0), True), ([], False), ({}, False), (None, False)],
)
def test_what_has_an_order(value, expected):
    """Lists, maps and null have none."""
    assert comparable(value) is expected


# --------------------------------------------------------------------------------------------- membership
@pytest.mark.parametrize(
    ("container", "item", "expected"),
    [
        ([1, 2], 2.0, True),
        ([1], True, False),
        ([None], None, True),
        ([1], None, False),
        ([[1]], [1.0], True),
        ([], 1, False),
        ([math.nan], math.nan, False),
        ([QUANTITY("1"), "a"], "a", True),
        (["a"], QUANTITY("1"), False),
    ],
)
def test_what_is_in_a_list(container, item, expected):
    """An equal element is; an error of a comparison is not equality."""
    assert contains(container, item, nothing) is expected


# --------------------------------------------------------------------------------------------------- effort
@pytest.mark.parametrize(
    ("one", "other", "least"),
    [([0] * 100, [0] * 100, 100), ({"a": [0] * 50}, {"a": [0] * 50}, 50), ("x" * 8000, "x" * 8000, 500)],
)
def test_every_step_of_a_comparison_is_counted(one, other, least):
    """At least one for each element, and one for sixteen characters of a long text."""
    counted = []
    equal(one, other, counted.append)
    assert sum(counted) >= least


def test_texts_of_different_lengths_differ_at_once():
    """They are not read."""
    counted = []
    assert not equal("x" * 8000, "x" * 8001, counted.append)
    assert counted == []
