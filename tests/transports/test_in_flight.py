"""Fair use of a worker: what one tenant takes, and what is left for others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.in_flight import InFlight

TENANTS = st.sampled_from([("p", "a"), ("p", "b"), ("q", "a"), ("q", "")])


def taken(in_flight, tenant):
    """How many calls a tenant can open."""
    count = 0
    while in_flight.has_room(tenant):
        assert in_flight.take(tenant)
        count += 1
    assert not in_flight.take(tenant)
    return count


def test_one_tenant_alone_has_half():
    """And another one finds room."""
    in_flight = InFlight(1000)
    assert taken(in_flight, ("p", "a")) == 501
    assert taken(in_flight, ("p", "b")) == 250


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_smallest_limits_allow_a_call(limit):
    """A limit of one is one."""
    assert taken(InFlight(limit), ("p", "a")) == {1: 1, 2: 2, 3: 2}[limit]


def test_the_limit_holds_for_all_together():
    """However many tenants there are."""
    in_flight = InFlight(10)
    assert sum(taken(in_flight, ("p", str(number))) for number in range(100)) == 10


def test_the_refusal_says_which_limit():
    """All, or the tenant's share."""
    in_flight = InFlight(10)
    taken(in_flight, ("p", "a"))
    assert "6 of the 10 open calls" in in_flight.refusal()
    for number in range(4):
        taken(in_flight, ("p", str(number)))
    assert in_flight.refusal().startswith("10 open calls, the limit worker_in_flight")


@pytest.mark.property
@given(st.lists(st.tuples(TENANTS, st.booleans()), max_size=200), st.integers(4, 40))
def test_greed_never_takes_the_last_place_from_who_has_none(steps, limit):
    """After any number of calls of up to four tenants, one that has no call open can open one."""
    in_flight, opened = InFlight(limit), []
    for tenant, is_new in steps:
        if is_new and in_flight.take(tenant):
            opened.append(tenant)
        elif not is_new and tenant in opened:
            opened.remove(tenant)
            in_flight.remove(tenant)
        assert in_flight.open == len(opened) <= limit
        if limit >= 20:
            assert in_flight.has_room(("new", ""))
    for tenant in opened:
        in_flight.remove(tenant)
    assert in_flight._by_tenant == {}
