"""The tokens of a text."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.parser.lexer import KEYWORDS, Unlexable, tokenize


def kinds(text):
    return [token.kind for token in tokenize(text)][:-1]


def tokens(text):
    return [token.text for token in tokenize(text)][:-1]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", "int"),
        ("0x1F", "int"),
        ("1u", "uint"),
        ("0xffU", "uint"),
        ("1.5", "float"),
        (".5", "float"),
        ("1e3", "float"),
        ("1.5E-3", "float"),
        ("name", "name"),
        ("_n1", "name"),
        ("`a.b-c/d e`", "quoted"),
        ("'a'", "string"),
        ('"a"', "string"),
        ("r'\\'", "string"),
        ("'''a\n'b'''", "string"),
        ('"""a"b"""', "string"),
        ("b'a'", "bytes"),
        ("Br'a'", "bytes"),
        ("true", "true"),
        ("in", "in"),
        ("==", "=="),
        ("&&", "&&"),
        ("{", "{"),
    ],
)
def test_a_token_has_a_kind(text, kind):
    """Symbols and keywords are kinds of their own."""
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a<=b", ["a", "<=", "b"]),
        ("a<b", ["a", "<", "b"]),
        ("1.5.a", ["1.5", ".", "a"]),
        ("1.a", ["1", ".", "a"]),
        ("1e", ["1", "e"]),
        ("0x", ["0", "x"]),
        ("inn in", ["inn", "in"]),
        ("rb'a'", ["rb", "'a'"]),
        ("'a''b'", ["'a'", "'b'"]),
        ("''''''", ["''''''"]),
        ("-1", ["-", "1"]),
        ("a//b\nc", ["a", "c"]),
        ("a\t\f\r\n b", ["a", "b"]),
    ],
)
def test_the_longest_token_wins(text, found):
    """Blanks and comments only part tokens."""
    assert tokens(text) == found


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("#", 0),
        ("a @ b", 2),
        ("'a", 0),
        ("'a\nb'", 0),
        ("1 & 2", 2),
        ("`a`b`", 4),
        ("'\\q'", 0),
        ("é", 0),
        ("\u00a0", 0),
    ],
)
def test_a_text_that_is_no_token_ends_the_lexing(text, offset):
    """The place is where it begins."""
    with pytest.raises(Unlexable) as caught:
        list(tokenize(text))
    assert caught.value.offset == offset


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
def test_keywords_are_no_names(keyword):
    """Longer names may begin with them."""
    assert kinds(keyword) == [keyword]
    assert kinds(f"{keyword}s") == ["name"]


@pytest.mark.property
@given(st.text(alphabet="ab1.'\"\\rbu`/ \n(){}[]?:<>=!&|+-*%,#é", max_size=40))
def test_tokens_stand_in_the_text_where_they_say(text):
    """In its order, and nothing between them but blanks and comments."""
    with suppress(Unlexable):
        end = 0
        for token in tokenize(text):
            between = text[end : token.offset]
            assert all(not line.strip() or "//" in line for line in between.split("\n"))
            assert text[token.offset : token.offset + len(token.text)] == token.text
            end = token.offset + len(token.text)
        assert token.kind == "end"
