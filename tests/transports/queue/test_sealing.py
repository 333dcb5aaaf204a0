"""What is sealed opens at its own place, with one of the keys, and nowhere else."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports.queue.sealing import SEAL_BYTES, QueueSeals

NOW = 1_763_757_000_000
LANES = st.sampled_from(["a" * 32, "b" * 32])
GATEWAYS = st.sampled_from(["c" * 32, "d" * 32])
IDENTITIES = st.tuples(st.binary(min_size=8, max_size=8), st.integers(0, 2**52))
STREAMS = st.sampled_from(["one", "two"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Key files: one key, another one, both."""
    folder = tmp_path_factory.mktemp("keys")
    keys = [base64.b64encode(os.urandom(32)).decode() + "\n" for _ in range(2)]
    made = {}
    for name, text in (("one", keys[0]), ("other", keys[1]), ("both", keys[1] + keys[0])):
        made[name] = folder / name
        made[name].write_text(text)
    return made


@pytest.fixture(scope="module")
def seals(files):
    """By name of stream, with the first key."""
    return {stream: QueueSeals(stream, files["one"]) for stream in ("one", "two")}


@pytest.mark.property
@given(
    content=st.binary(max_size=200), place=st.tuples(STREAMS, LANES, GATEWAYS, IDENTITIES), now=st.integers(0, 2**45)
)
def test_an_ask_opens_where_it_was_sealed(seals, content, place, now):
    """What goes in comes out, a seal longer."""
    stream, lane, gateway, identity = place
    sealed = seals[stream].seal_ask(lane, gateway, identity, content, now)
    assert len(sealed) == len(content) + SEAL_BYTES
    assert seals[stream].open_ask(lane, gateway, identity, sealed) == content


@pytest.mark.property
@given(
    places=st.tuples(st.tuples(STREAMS, LANES, GATEWAYS, IDENTITIES), st.tuples(STREAMS, LANES, GATEWAYS, IDENTITIES)),
)
def test_an_ask_that_is_moved_does_not_open(seals, places):
    """Another stream, lane, gateway, id or deadline: any one of them is enough."""
    (stream, lane, gateway, identity), there = places
    sealed = seals[stream].seal_ask(lane, gateway, identity, b"x", NOW)
    opened = seals[there[0]].open_ask(*there[1:], sealed)
    assert (opened is not None) == (places[0] == there)


@pytest.mark.property
@given(at=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_an_altered_byte_opens_nothing(seals, at, flip):
    """Version, hour, nonce, content and tag: each byte counts."""
    sealed = bytearray(seals["one"].seal_replies("c" * 32, b"content", NOW))
    sealed[at % len(sealed)] ^= flip
    assert seals["one"].open_replies("c" * 32, bytes(sealed)) is None


@pytest.mark.property
@given(st.binary(max_size=100))
def test_bytes_that_nobody_sealed_open_nothing(seals, content):
    """Whatever they are, and without an exception."""
    one = seals["one"]
    for garbage in (content, b"\x01" + content):
        assert one.open_ask("a" * 32, "c" * 32, (b"12345678", 1), garbage) is None
        assert one.open_replies("c" * 32, garbage) is None
        assert one.open_presence("somebody", garbage) is None


def test_what_goes_one_way_cannot_be_shown_as_what_goes_another(seals):
    """Asks, replies and presences have keys of their own, even under equal names."""
    one = seals["one"]
    replies, presence = one.seal_replies("c" * 32, b"x", NOW), one.seal_presence("c" * 32, b"x", NOW)
    assert one.open_presence("c" * 32, replies) is None
    assert one.open_replies("c" * 32, presence) is None
    assert one.open_replies("c" * 32, replies) == one.open_presence("c" * 32, presence) == b"x"


def test_each_hour_has_its_own_key(seals):
    """So no key seals 2^32 messages; what was sealed in another hour opens all the same."""
    one = seals["one"]
    early, late = one.seal_replies("c" * 32, b"x", 0), one.seal_replies("c" * 32, b"x", 1 << 22)
    assert early[:5] != late[:5]
    assert one.open_replies("c" * 32, early) == one.open_replies("c" * 32, late) == b"x"
    assert one.open_replies("c" * 32, late[:5] + early[5:]) is None


def test_the_first_key_seals_and_all_open(files):
    """As long as both are in the file, both sides understand each other, whichever is first."""
    one, other, both = (QueueSeals("one", files[name]) for name in ("one", "other", "both"))
    assert both.open_presence("b", one.seal_presence("b", b"x", NOW)) == b"x"
    assert other.open_presence("b", both.seal_presence("b", b"x", NOW)) == b"x"
    assert one.open_presence("b", both.seal_presence("b", b"x", NOW)) is None


def test_a_file_that_breaks_changes_nothing(tmp_path, files):
    """Keys that were read stay in use; the first ones are waited for, and ``why`` says for what."""
    file = tmp_path / "keys"
    seals = QueueSeals("one", file)
    assert str(file) in seals.why
    with pytest.raises(ValueError, match="No such file"):
        seals.seal_presence("b", b"x", NOW)
    file.write_text(files["one"].read_text())
    assert seals.refresh()
    assert seals.why == ""
    sealed = seals.seal_presence("b", b"x", NOW)
    file.write_text("nonsense")
    assert not seals.refresh()
    assert seals.why == ""
    assert seals.open_presence("b", sealed) == b"x"
