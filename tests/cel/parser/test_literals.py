"""What string and bytes tokens stand for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.parser.literals import unquote, unquote_bytes


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("''", ""),
        ("'a'", "a"),
        ('"a"', "a"),
        ("'''a'b'''", "a'b"),
        ('"""a"b"""', 'a"b'),
        ("''''''", ""),
        (r"'\a\b\f\n\r\t\v'", "\a\b\f\n\r\t\v"),
        (r"'\\\'\"\`\?'", "\\'\"`?"),
        (r"'\x41\X42'", "AB"),
        (r"'\u00e9\U0001F600'", "é😀"),
        (r"'\101\000'", "A\0"),
        (r"r'\n\x41'", r"\n\x41"),
        (r'R"\""', '\\"'),
        (r"r'''\n'''", r"\n"),
        ("'a\r\nb\rc'", "a\nb\nc"),
        ("r'a\r\nb'", "a\nb"),
    ],
)
def test_a_string_stands_for_a_text(token, text):
    """Escapes are code points; newlines are normalized, in raw strings too."""
    assert unquote(token) == text


@pytest.mark.parametrize("token", [r"'\ud800'", r"'\udfff'", r"'\U00110000'", r"'\UFFFFFFFF'"])
def test_what_is_no_character_is_refused(token):
    """Halves of surrogate pairs, and what lies beyond Unicode."""
    with pytest.raises(ValueError, match="invalid unicode code point"):
        unquote(token)


@pytest.mark.parametrize(
    ("token", "data"),
    [
        ("b''", b""),
        ("b'a'", b"a"),
        ("b'é'", "é".encode()),
        (r"b'\xff\377'", b"\xff\xff"),
        (r"b'\n\\'", b"\n\\"),
        (r"br'\n'", rb"\n"),
        ("b'''a'b'''", b"a'b"),
    ],
)
def test_a_bytes_token_stands_for_bytes(token, data):
    """Hexadecimal and octal escapes are bytes, characters are UTF-8."""
    assert unquote_bytes(token) == data


@pytest.mark.parametrize("token", [r"b'\u00e9'", r"b'\U0001F600'"])
def test_bytes_have_no_escapes_of_code_points(token):
    """It would not be clear which bytes are meant."""
    with pytest.raises(ValueError, match="unable to unescape string"):
        unquote_bytes(token)


@pytest.mark.property
@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
def test_every_text_can_be_written_with_escapes(text):
    """As code points."""
    assert unquote("'" + "".join(f"\\U{ord(char):08x}" for char in text) + "'") == text


@pytest.mark.property
@given(st.binary())
def test_all_bytes_can_be_written_with_escapes(data):
    """As hexadecimal and as octal ones."""
    assert unquote_bytes("b'" + "".join(f"\\x{byte:02x}" for byte in data) + "'") == data
    assert unquote_bytes("b'" + "".join(f"\\{byte:03o}" for byte in data) + "'") == data
