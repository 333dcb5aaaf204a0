"""How many calls may be made again: shares and reserves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.grpc.retry_budget import RetryBudget


def test_a_reserve_is_there_at_the_start_and_bounds_what_is_saved():
    """After few calls a few may be made again; after many, no more at once."""
    budget = RetryBudget(0.05, 3.0)
    assert [budget.spend() for _ in range(4)] == [True, True, True, False]
    budget.calls += 1000
    assert [budget.spend() for _ in range(4)] == [True, True, True, False]


@pytest.mark.property
@given(
    st.floats(min_value=0.0, max_value=1.0),
    st.floats(min_value=0.0, max_value=10.0),
    st.lists(st.booleans(), max_size=400),
)
def test_retries_are_never_more_than_their_share_and_the_reserve(share, reserve, calls):
    """At every moment, whenever they are wanted."""
    budget, ordinary, again = RetryBudget(share, reserve), 0, 0
    for wanted in calls:
        if wanted:
            again += budget.spend()
        else:
            ordinary += 1
            budget.calls += 1
        assert again <= share * ordinary + reserve + 1e-6


def test_a_share_of_nothing_is_never():
    """With a share of 0 there is no retry, not even at the start."""
    budget = RetryBudget(0.0, 10.0)
    budget.calls += 1
    assert not budget.spend()
