"""Reports show texts of workers and requests without control characters."""

import pytest

from gateway.quoting import clean


@pytest.mark.parametrize(
    "character", ["\x1b", "\x00", "\r", "\x85", "\x9b", "\u2028", "\u202e", "\u2066", "\u061c"], ids=ascii
)
def test_no_text_controls_the_terminal(character):
    """A character that would move the cursor, break the line or change the text direction becomes a question mark."""
    assert clean(f"a{character}[2Jb") == "a?[2Jb"


def test_other_texts_stay():
    """Line breaks, tabs and letters of every script are shown."""
    assert clean("a\n\tb é ש ع 漢 😀") == "a\n\tb é ש ع 漢 😀"
