"""When a second replica is asked, and how often: percentiles and budgets."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.grpc.hedging import NEEDED, REMEMBERED, Budget, Latencies


def known(*seconds):
    latencies = Latencies()
    for each in seconds:
        latencies.add(each)
    return latencies


def test_few_latencies_say_nothing():
    """Before enough are known there is no percentile."""
    assert known(*[0.1] * (NEEDED - 1)).p95 is None
    assert known(*[0.1] * NEEDED).p95 == 0.1


def test_ninety_five_of_a_hundred_are_no_slower():
    """The percentile leaves at most a twentieth above it, in whatever order they came."""
    seconds = [number / 1000 for number in range(REMEMBERED)]
    random.Random(0).shuffle(seconds)
    p95 = known(*seconds).p95
    above = sum(each > p95 for each in seconds)
    assert 0 < above <= REMEMBERED / 20


def test_old_latencies_are_forgotten():
    """A policy that has become faster is known as fast after as many answers as count."""
    assert known(*[1.0] * REMEMBERED, *[0.001] * REMEMBERED).p95 == 0.001


def test_one_outlier_is_no_percentile():
    """One slow answer of many does not make everybody wait."""
    assert known(*[0.001] * (REMEMBERED - 1), 9.0).p95 == 0.001


def test_a_reserve_is_there_at_the_start_and_bounds_what_is_saved():
    """Whoever has asked little may ask again a few times; whoever has asked much, no more often at once."""
    budget = Budget(0.05, 3.0)
    assert [budget.spend() for _ in range(4)] == [True, True, True, False]
    for _ in range(1000):
        budget.calls += 1
    assert [budget.spend() for _ in range(4)] == [True, True, True, False]


@pytest.mark.property
@given(
    st.floats(min_value=0.0, max_value=1.0),
    st.floats(min_value=0.0, max_value=10.0),
    st.lists(st.booleans(), max_size=400),
)
def test_extra_calls_are_never_more_than_their_share_and_the_reserve(share, reserve, asks):
    """At every moment, whenever they are wanted."""
    budget, ordinary, extra = Budget(share, reserve), 0, 0
    for wanted in asks:
        if wanted:
            extra += budget.spend()
        else:
            ordinary += 1
            budget.calls += 1
        assert extra <= share * ordinary + reserve + 1e-6


def test_a_share_of_nothing_is_never():
    """With a share of 0 there is no extra call, not even at the start."""
    budget = Budget(0.0, 10.0)
    budget.calls += 1
    assert not budget.spend()
