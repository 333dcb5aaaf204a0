"""A share of the reviews in flight for each that needs one."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.serving.in_flight_shares import Flow, InFlightShares


def flow(tenant="t", client="c", entry="e"):
    return Flow(client, tenant, entry)


def taken(shares, wanted, number=2000):
    return sum(shares.acquire(wanted) for _ in range(number))


def test_one_namespace_has_half_and_the_rest_stays_free():
    """A flood leaves room for those that come later."""
    shares = InFlightShares(1024)
    assert taken(shares, flow("flood")) == 512
    assert taken(shares, flow("second", "c2", "e2")) == 256
    assert shares.acquire(flow("innocent", "c3", "e3"))


def test_one_entry_has_three_quarters():
    """So has one API server: reviews of one policy in a few namespaces leave room for other policies."""
    shares = InFlightShares(1024)
    names = [str(number) for number in range(20)]
    assert sum(shares.acquire(flow(name, name)) for _ in range(100) for name in names) == 768
    assert shares.acquire(flow("other", "other", "other"))


def test_a_namespace_that_has_nothing_is_not_behind_two_that_have_much():
    """They leave a quarter of what their API server may have; and all namespaces together leave some for another's."""
    shares = InFlightShares(1024)
    assert taken(shares, flow("first")) + taken(shares, flow("second")) == 768
    assert sum(shares.acquire(flow(str(number))) for number in range(2000)) == 192
    assert shares.acquire(flow("other", "other", "other"))


def test_two_large_ones_are_not_more_than_half():
    """What one wants counts before it has it."""
    shares = InFlightShares(524_288)
    assert shares.acquire(flow("flood"), 105_000)
    assert not shares.acquire(flow("flood"), 295_000)
    assert shares.acquire(flow("other"), 24_000)


def test_a_gateway_with_room_for_one_can_serve():
    """And refuses the second review, whoever sends it."""
    shares = InFlightShares(1)
    assert shares.acquire(flow())
    assert not shares.acquire(flow("other", "other", "other"))
    shares.release(flow())
    assert shares.acquire(flow("other", "other", "other"))


def test_a_share_is_of_bytes_as_well():
    """Twenty-two bodies of three megabytes of one namespace leave half of 128 MiB free, for large ones too."""
    shares, size = InFlightShares(134_217_728), 3_000_000
    assert sum(shares.acquire(flow("flood"), size) for _ in range(48)) == 22
    assert shares.acquire(flow("other"), 50_000_000)
    assert not shares.acquire(flow("third"), 50_000_000)


FLOWS = st.builds(Flow, st.sampled_from("ab"), st.sampled_from("klmno"), st.sampled_from("xyz"))


@given(st.integers(1, 12), st.lists(st.tuples(FLOWS, st.integers(1, 13)) | st.none(), max_size=60))
def test_shares_are_bounded_and_leave_no_state(total, steps):
    """No more is taken than there is, one who has none gets what is free, and an empty house is empty."""
    shares = InFlightShares(total)
    held = []
    for step in steps:
        if step is None:
            if held:
                shares.release(*held.pop(0))
            continue
        wanted, amount = step
        newcomer = not any(one == other for each, _ in held for one, other in zip(each, wanted, strict=True))
        taken = sum(each for _, each in held)
        got = shares.acquire(wanted, amount)
        assert got or not newcomer or taken + amount > total
        held += [step] if got else []
        assert shares.taken == sum(each for _, each in held) <= total
    for each in held:
        shares.release(*each)
    assert shares.taken == 0
    assert not any(shares._held)
