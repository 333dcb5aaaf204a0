"""Strings: cel-go's standard library and its extension."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cel.evaluation import error, value

texts = st.text(alphabet="abé日 ", max_size=12)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'tacocat'.charAt(0)", "t"),
        ("'tacocat'.charAt(7)", ""),
        ("'日本'.charAt(1)", "本"),
        ("'abc'.contains('b')", True),
        ("'abc'.contains('')", True),
        ("'abc'.startsWith('ab')", True),
        ("'abc'.endsWith('bc')", True),
        ("'tacocat'.indexOf('ac')", 1),
        ("'tacocat'.indexOf('none')", -1),
        ("'tacocat'.indexOf('')", 0),
        ("'tacocat'.indexOf('a', 3)", 5),
        ("'tacocat'.indexOf('a', 100)", -1),
        ("'tacocat'.lastIndexOf('at')", 5),
        ("'tacocat'.lastIndexOf('')", 7),
        ("'tacocat'.lastIndexOf('a', 3)", 1),
        ("'tacocat'.lastIndexOf('a', 100)", -1),
        ("'TacoCÆt'.lowerAscii()", "tacocÆt"),
        ("'tacoCÆt Xii'.upperAscii()", "TACOCÆT XII"),
        ("'hello hello'.replace('he', 'we')", "wello wello"),
        ("'hello hello'.replace('he', 'we', 1)", "wello hello"),
        ("'hello hello'.replace('he', 'we', 0)", "hello hello"),
        ("'ab'.replace('', '_')", "_a_b_"),
        ("'ab'.replace('', '_', 2)", "_a_b"),
        ("'a b c'.split(' ')", ["a", "b", "c"]),
        ("'a b c'.split(' ', 0)", []),
        ("'a b c'.split(' ', 1)", ["a b c"]),
        ("'a b c'.split(' ', 2)", ["a", "b c"]),
        ("'a b c'.split(' ', -1)", ["a", "b", "c"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("'tacocat'.substring(4)", "cat"),
        ("'tacocat'.substring(0, 4)", "taco"),
        ("'tacocat'.substring(7)", ""),
        ("'  \\u00a0\\ttrim\\n  '.trim()", "trim"),
        ("'\\x1c'.trim()", "\x1c"),
        ("strings.quote('single-quote with \"double quote\"')", '"single-quote with \\"double quote\\""'),
        ("strings.quote('a\\n\\t\\\\')", r'"a\n\t\\"'),
        ("['a', 'b'].join()", "ab"),
        ("['a', 'b'].join('-')", "a-b"),
        ("[].map(e, 'x').join('-')", ""),
    ],
)
def test_what_a_function_comes_to(expression, expected):
    """Positions count code points."""
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("'tacocat'.charAt(8)", "index out of range: 8"),
        ("'tacocat'.charAt(-1)", "index out of range: -1"),
        ("'tacocat'.indexOf('a', -1)", "index out of range: -1"),
        ("'tacocat'.lastIndexOf('a', -1)", "index out of range: -1"),
        ("'tacocat'.substring(8)", "index out of range: 8"),
        ("'tacocat'.substring(-1)", "index out of range: -1"),
        ("'tacocat'.substring(0, 8)", "index out of range: 8"),
        ("'tacocat'.substring(-1, 3)", "index out of range: -1"),
        ("'tacocat'.substring(3, 2)", "invalid substring range. start: 3, end: 2"),
        ("c.join()", "join: invalid input: 1"),
        ("b.join()", "join: invalid input: [1]"),
    ],
)
def test_what_is_out_of_range_is_an_error(expression, message):
    """It says which index."""
    assert error(expression, b=["x", [1]], c=["x", 1]) == message


@pytest.mark.property
@given(texts, st.text(alphabet="abé ", min_size=1, max_size=2))
def test_what_was_split_can_be_joined_again(text, separator):
    """By the same separator."""
    assert value("a.split(b).join(b) == a", a=text, b=separator) is True


@pytest.mark.property
@given(texts, texts)
def test_a_text_that_is_contained_has_an_index(text, part):
    """And the text at that index is the part."""
    index = value("a.indexOf(b)", a=text, b=part)
    assert (index >= 0) == value("a.contains(b)", a=text, b=part)
    if index >= 0:
        assert value("a.substring(c).startsWith(b)", a=text, b=part, c=index) is True
        assert value("a.lastIndexOf(b) >= a.indexOf(b)", a=text, b=part) is True


@pytest.mark.property
@given(texts, st.integers(0, 12))
def test_a_text_is_its_two_parts(text, index):
    """Wherever it is cut."""
    if index <= len(text):
        assert value("a.substring(0, b) + a.substring(b) == a", a=text, b=index) is True


@pytest.mark.property
@given(texts)
def test_ascii_letters_change_and_others_do_not(text):
    """Back and forth."""
    assert value("a.upperAscii().lowerAscii() == a.lowerAscii()", a=text) is True
    assert value("a.lowerAscii()", a=text) == "".join(c.lower() if c.isascii() else c for c in text)
