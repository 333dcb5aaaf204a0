"""Each message of a queue opens at its own place, and nowhere else."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.queue.seals import QueueSeals

LANES = st.sampled_from(["a" * 32, "b" * 32])
GATEWAYS = st.sampled_from(["c" * 32, "d" * 32])
IDENTITIES = st.tuples(st.binary(min_size=8, max_size=8), st.integers(0, 2**52))
STREAMS = st.sampled_from(["one", "two"])


@pytest.fixture(scope="module")
def seals(tmp_path_factory):
    """Seals by stream, with one key."""
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
    return {stream: QueueSeals(stream, file) for stream in ("one", "two")}


@pytest.mark.property
@given(content=st.binary(max_size=200), place=st.tuples(STREAMS, LANES, GATEWAYS, IDENTITIES))
def test_a_call_opens_where_it_was_sealed(seals, content, place):
    """A call opens with its own place and identity."""
    stream, lane, gateway, identity = place
    sealed = seals[stream].seal_call(lane, gateway, identity, content)
    assert seals[stream].open_call(lane, gateway, identity, sealed) == content


@pytest.mark.property
@given(
    places=st.tuples(st.tuples(STREAMS, LANES, GATEWAYS, IDENTITIES), st.tuples(STREAMS, LANES, GATEWAYS, IDENTITIES)),
)
def test_a_call_that_is_moved_does_not_open(seals, places):
    """With another stream, lane, gateway, ID or deadline it does not open."""
    (stream, lane, gateway, identity), there = places
    sealed = seals[stream].seal_call(lane, gateway, identity, b"x")
    opened = seals[there[0]].open_call(*there[1:], sealed)
    assert (opened is not None) == (places[0] == there)


def test_messages_of_one_kind_do_not_open_as_another(seals):
    """Calls, replies and presences have different keys, even for equal names."""
    one = seals["one"]
    replies, presence = one.seal_replies("c" * 32, b"x"), one.seal_presence("c" * 32, b"x")
    assert one.open_presence("c" * 32, replies) is None
    assert one.open_replies("c" * 32, presence) is None
    assert one.open_replies("c" * 32, replies) == one.open_presence("c" * 32, presence) == b"x"
