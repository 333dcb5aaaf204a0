"""The key: 32 bytes, equal for equal questions and for no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.documents.verdict_key import key_prefix, verdict_key

PARTS = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(["mutating", "validating"]),
        "identity": st.sampled_from([b"", b"1", b"12", b"\x00", b"\x00" * 8]),
        "version": st.sampled_from(["", "1", "2", "12", "\x00", "\ud800", "ä"]),
        "document": st.sampled_from([b"", b"1", b"2", b"12", b"\x00", b"\x00" * 7 + b"\x01"]),
    }
)


def key_of(parts):
    return verdict_key(
        key_prefix(**{name: parts[name] for name in ("phase", "identity", "version")}), parts["document"]
    )


@pytest.mark.property
@given(PARTS, PARTS)
def test_equal_questions_have_equal_keys_and_no_others(one, other):
    """Parts that could run into each other do not."""
    assert (key_of(one) == key_of(other)) == (one == other)
    assert len(key_of(one)) == 32


def test_the_key_is_the_same_on_every_replica_and_in_every_release():
    """A key that changed by accident would flush every cache, and this test."""
    key = verdict_key(key_prefix(phase="mutating", identity=b"i" * 32, version="1.2"), b"d" * 32)
    assert key.hex() == "8f8feef45a77a124a1709ea754817fca1d0a45db3d746b659c71a46050fb4dcb"
