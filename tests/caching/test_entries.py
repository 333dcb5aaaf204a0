"""An entry is written down and read back; whatever else is read is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.caching.entries import Entry, packed, unpacked
from gateway.engine.verdicts import Allow, Change, ChangeKind, Deny

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
WARNINGS = st.lists(TEXT, max_size=3).map(tuple)
ANNOTATIONS = st.dictionaries(TEXT, TEXT, max_size=3)
REUSE = st.none() | st.floats(min_value=0, max_value=1e9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=10,
)
CHANGES = st.builds(Change, kind=st.sampled_from(ChangeKind), content=st.binary(max_size=50))
VERDICTS = st.builds(
    Allow,
    change=st.none() | CHANGES,
    warnings=WARNINGS,
    audit_annotations=ANNOTATIONS,
    version=TEXT,
    reuse=REUSE,
) | st.builds(
    Deny,
    code=st.integers(400, 599),
    message=TEXT,
    reason=TEXT,
    details=st.none() | st.dictionaries(TEXT, JSON, max_size=3),
    warnings=WARNINGS,
    audit_annotations=ANNOTATIONS,
    version=TEXT,
    reuse=REUSE,
)
ENTRIES = st.builds(Entry, called_at=st.floats(0, 1e11), verdict=VERDICTS)


@pytest.mark.property
@given(ENTRIES)
def test_round_trip(entry):
    """What is read back is what was written down, to the last member."""
    content = packed(entry)
    assert content is not None
    assert unpacked(content) == entry


@pytest.mark.property
@given(ENTRIES, st.data())
def test_garbage(entry, data):
    """Altered bytes are an entry or none, and never an exception."""
    content = bytearray(packed(entry) or b"")
    at = data.draw(st.integers(0, len(content) - 1))
    content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=5))
    found = unpacked(bytes(content))
    assert found is None or isinstance(found, Entry)


@pytest.mark.property
@given(st.binary(max_size=200))
def test_any_bytes(content):
    """Any bytes are an entry or none."""
    found = unpacked(content)
    assert found is None or isinstance(found, Entry)


@pytest.mark.parametrize("details", [{"n": 2**70}, {"s": "\ud800"}, {"x": object()}, json.loads("[" * 900 + "]" * 900)])
def test_what_cannot_be_written_down(details):
    """A value that msgpack does not know is no entry, and no exception."""
    content = packed(Entry(called_at=1.0, verdict=Deny(details={"d": details})))
    assert content is None or unpacked(content) is not None
