"""JSON Pointer: RFC 6901's own examples, what is refused, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.patching.errors import PatchError
from gateway.patching.parsing import parse_pointer
from gateway.scopes.pointer import format_pointer

# RFC 6901, section 5, by the member that each example names.
EXAMPLES = {
    "": (),
    "/foo": ("foo",),
    "/foo/0": ("foo", "0"),
    "/": ("",),
    "/a~1b": ("a/b",),
    "/c%d": ("c%d",),
    "/e^f": ("e^f",),
    "/g|h": ("g|h",),
    "/i\\j": ("i\\j",),
    '/k"l': ('k"l',),
    "/ ": (" ",),
    "/m~0n": ("m~n",),
}


@pytest.mark.parametrize(("text", "tokens"), EXAMPLES.items())
def test_the_examples_of_the_rfc(text, tokens):
    """Each pointer of RFC 6901, section 5 names what the RFC says, and is written as it was."""
    assert parse_pointer(text) == tokens
    assert format_pointer(tokens) == text


def test_an_escaped_tilde_does_not_escape_what_follows():
    """``~01`` is ``~1``, and not ``/``."""
    assert parse_pointer("/~01") == ("~1",)


@pytest.mark.parametrize("text", ["a", "a/b", " /a", "#/a", "/~", "/~2", "/a~/b", "/~~0"])
def test_what_is_no_pointer_is_refused(text):
    """A text that does not start with ``/``, or has a lone ``~``, is a PatchError that repeats it."""
    with pytest.raises(PatchError, match="expected a JSON Pointer"):
        parse_pointer(text)


@pytest.mark.property
@given(st.lists(st.text()))
def test_every_list_of_tokens_survives(tokens):
    """Formatting a pointer and parsing it gives the same tokens, whatever is in them."""
    assert parse_pointer(format_pointer(tokens)) == tuple(tokens)


@pytest.mark.property
@given(st.text(alphabet="/~01a"))
def test_any_text_is_a_pointer_or_a_patch_error(text):
    """A text either parses, and then is written as it was, or raises PatchError."""
    try:
        tokens = parse_pointer(text)
    except PatchError:
        return
    assert format_pointer(tokens) == text
