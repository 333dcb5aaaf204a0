"""What calls cost, by Kubernetes' formulas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.interpreter import costs
from gateway.cel.libraries.addresses import CIDR, IP
from gateway.cel.libraries.netip import Address
from tests.cel.evaluation import cost

TEXT = "x" * 100
"""Traversing it costs 10."""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.startsWith('x')", 1 + 10),
        ("a.endsWith('x')", 1 + 10),
        ("a.contains('xy')", 1 + 10),
        ("a.lowerAscii()", 1 + 10),
        ("a.trim()", 1 + 10),
        ("a.replace('x', 'y')", 1 + 20),
        ("a.split('y')", 1 + 20),
        ("a.matches('x+')", 1 + 11),
        ("a.find('x+')", 1 + 11),
        ("string(a) + string(a)", 4 + 20),
        ("string(a) < string(b)", 4 + 1),
        ("a == b", 2 + 1),
        ("a == a", 2 + 10),
        ("a != a", 2 + 10),
        ("a.size()", 2),
        ("a.charAt(1)", 2),
        ("a.indexOf('y')", 1 + 10),
        ("isQuantity(a)", 1 + 10),
        ("isSemver(a)", 1 + 10),
        ("isIP(a)", 1 + 10),
        ("bytes(string(a)).size()", 1 + 1 + 10 + 1),
        ("strings.quote(a).size()", 1 + 10 + 1),
    ],
)
def test_what_depends_on_a_text_costs_a_part_of_its_length(expression, expected):
    """A tenth, rounded up, twice that for replace and split; other functions one."""
    assert cost(expression, a=TEXT, b="y") == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("c.isSorted()", 1 + 100),
        ("c.sum()", 1 + 100),
        ("c.max()", 1 + 100),
        ("c.indexOf(5)", 1 + 100),
        ("dyn(5) in c", 1 + 1),
        ("c.distinct().size()", 1 + (100 * 100 * 2 + 1 + 10) + 1),
        ("c.sort().size()", 1 + 1 + 1),
        ("c.slice(0, 5).size()", 1 + (5 + 1 + 10) + 1),
        ("c.reverse().size()", 1 + (100 + 1 + 10) + 1),
        ("lists.range(5).size()", (5 + 1 + 10) + 1),
        ("c.first()", 2),
        ("sets.contains(c, c)", 2 + 1 + 10_000),
        ("sets.equivalent(c, c)", 2 + 1 + 20_000),
        ("sets.intersects(c, c)", 2 + 1 + 10_000),
    ],
)
def test_what_depends_on_a_list_costs_by_its_size(expression, expected):
    """Walking once, comparing all with all, or making as many as come out; 1 where several overloads may be meant."""
    assert cost(expression, c=list(range(100))) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ip('10.0.0.1').family()", 1 + 1),
        ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", 1 + 1 + 1),
        ("cidr('10.0.0.0/8').containsCIDR('10.0.0.0/16')", 1 + 1 + 1 + 1 + 2),
    ],
)
def test_what_addresses_cost(expression, expected):
    """By the bytes of addresses and the lengths of texts."""
    assert cost(expression) == pytest.approx(expected, abs=3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *(("abc", 3), ("é", 1), (b"abc", 3), ([1, 2], 2), ({"a": 1}, 1), (5, 1), (None, 1)),
        *((IP(Address(4, 1)), 4), (IP(Address(6, 1)), 16), (CIDR(Address(4, 0), 9), 2)),
    ],
)
def test_how_large_a_value_is(value, expected):
    """Code points, bytes, elements, entries, bytes of addresses; else one."""
    assert costs.size(value) == expected


@pytest.mark.property
@given(st.text(max_size=60), st.text(max_size=60))
def test_a_longer_text_never_costs_less(text, more):
    """Of all functions that go by its length."""
    for expression in ("a.startsWith('x')", "a.replace('x', 'y')", "a.matches('x')", "a == a", "isIP(a)", "a.trim()"):
        assert cost(expression, a=text + more) >= cost(expression, a=text)


@pytest.mark.property
@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.lists(st.integers(0, 9), max_size=20))
def test_a_longer_list_never_costs_less(values, more):
    """Of all functions that go by its size."""
    for expression in ("a.sum()", "a.sort()", "a.distinct()", "sets.contains(a, a)", "a.isSorted()", "a.reverse()"):
        assert cost(expression, a=values + more) >= cost(expression, a=values)


def test_counting_before_a_walk_counts_every_value():
    """Each element, and one for each list and map."""
    counted = []
    costs.walk([[1, 2], {"a": "x"}, 3], counted.append)
    assert sum(counted) == (1 + 3) + (1 + 2) + (1 + 1)
