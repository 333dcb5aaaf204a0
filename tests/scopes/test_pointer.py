"""JSON Pointers: what is none, and which tokens are indexes."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.scopes.pointer import PointerError, array_index, escaped, format_pointer, parse_pointer


@pytest.mark.parametrize("text", ["a", " /a", "#/a", "/~", "/~2", "/a~/b"])
def test_what_is_no_pointer_is_refused_and_repeated(text):
    """The message says what was expected, and shows what was found."""
    with pytest.raises(PointerError, match="expected a JSON Pointer") as refused:
        parse_pointer(text)
    assert text in str(refused.value)


@pytest.mark.property
@given(st.lists(st.text()))
def test_every_pointer_survives(tokens):
    """Written and read, it is the same."""
    assert parse_pointer(format_pointer(tokens)) == tuple(tokens)
    assert format_pointer(tokens) == "".join("/" + escaped(token) for token in tokens)


@pytest.mark.parametrize(
    ("token", "index"),
    [
        ("0", 0),
        ("9", 9),
        ("10", 10),
        ("300", 300),
        ("1" * 19, sys.maxsize),
        ("1" * 5000, sys.maxsize),
        *[(none, None) for none in ("", "-", "-1", "+1", "00", "01", " 1", "1 ", "1.0", "1e3", "٣", "x")],
    ],
)
def test_an_index_is_digits_without_leading_zeros(token, index):
    """RFC 6901, section 4; one that no array can reach is beyond every array, however long."""
    assert array_index(token) == index
