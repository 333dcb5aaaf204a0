"""What a report says of texts that come from elsewhere."""

import pytest

from gateway.cli.wording import clean


@pytest.mark.parametrize(
    "character", ["\x1b", "\x00", "\r", "\x85", "\x9b", "\u2028", "\u202e", "\u2066", "\u061c"], ids=ascii
)
def test_no_text_controls_the_terminal(character):
    """What would move the cursor, break the line or turn the direction of what follows is shown as a question mark."""
    assert clean(f"a{character}[2Jb") == "a?[2Jb"


def test_other_texts_stay():
    """Line breaks, tabs and letters of every script are shown."""
    assert clean("a\n\tb é ש ع 漢 😀") == "a\n\tb é ש ع 漢 😀"
