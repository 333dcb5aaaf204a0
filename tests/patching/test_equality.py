"""Equality of JSON values, as RFC 6902, section 4.6 defines it for ``test``."""

import copy

import pytest
from hypothesis import given

from gateway.patching.equality import equal
from tests.patching.values import SOME, strictly_equal, values


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0, -0.0),
        (10**22, 1e22),
        (2**70, 2**70),
        ("é", "\u00e9"),
        ({"a": 1, "b": [True, None]}, {"b": [True, None], "a": 1.0}),
        ([], []),
        (None, None),
    ],
)
def test_equal_values(one, other):
    """Numbers are equal by value, and the order of members does not matter."""
    assert equal(one, other)
    assert equal(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, 1),
        (False, 0),
        (0, None),
        ("", None),
        ("1", 1),
        ("é", "e\u0301"),
        ([], {}),
        ([1, 2], [2, 1]),
        ({"a": None}, {}),
        ({"a": [True]}, {"a": [1]}),
        ([{"a": False}], [{"a": 0.0}]),
        (2**53, 2**53 + 1),
        (float(2**53), 2**53 + 1),
    ],
)
def test_different_values(one, other):
    """true is not 1 at any depth, null is not absent, and numbers with the same double still differ."""
    assert not equal(one, other)
    assert not equal(other, one)


@pytest.mark.property
@SOME
@given(values(), values())
def test_it_agrees_with_the_definition(one, other):
    """Two values are equal exactly if a member-by-member comparison says so; a copy always is."""
    assert equal(one, other) is strictly_equal(one, other)
    assert equal(one, copy.deepcopy(one))
