"""The words for a text that is no CEL at all."""

import sys

import pytest

from gateway.cel.parser import syntax_errors
from gateway.cel.parser.errors import Problem
from gateway.cel.parser.syntax_errors import reworded

OURS = [Problem(offset=1, message="Syntax error: ours")]


class Environment:
    """A parser that complains in the given words."""

    def __init__(self, words):
        self.words = words

    def compile(self, expression, *, disable_check):
        if self.words is not None:
            raise RuntimeError(self.words)


@pytest.fixture
def theirs(monkeypatch):
    def says(words):
        monkeypatch.setattr(syntax_errors, "_environment", lambda: Environment(words))

    return says


def test_theirs_are_taken_if_they_are_about_syntax(theirs):
    """Without the status around them."""
    theirs("INVALID_ARGUMENT: ERROR: <input>:1:2: Syntax error: theirs [INVALID_ARGUMENT]")
    assert reworded("a b", OURS) == "ERROR: <input>:1:2: Syntax error: theirs"


@pytest.mark.parametrize("words", [None, "ERROR: <input>:1:2: something else"])
def test_ours_stand_if_theirs_are_about_something_else(theirs, words):
    """Or if the text is fine for them."""
    theirs(words)
    assert "Syntax error: ours" in reworded("a b", OURS)


def test_ours_stand_where_the_package_is_not_installed(monkeypatch):
    """It has wheels for Linux with glibc only."""
    monkeypatch.setattr(syntax_errors, "_environment", lambda: None)
    assert reworded("a b", OURS) == "ERROR: <input>:1:2: Syntax error: ours\n | a b\n | .^"


@pytest.mark.parametrize("text", ["a" * 10_001, "a\0b"])
def test_some_texts_are_not_passed_on(theirs, text):
    """Those that are very long, and those that end early in C++."""
    theirs("ERROR: <input>:1:2: Syntax error: theirs")
    assert "ours" in reworded(text, OURS)


def test_problems_that_are_not_about_syntax_are_ours(theirs):
    """A reserved word is said by both in the same words."""
    theirs("ERROR: <input>:1:2: Syntax error: theirs")
    assert "theirs" not in reworded("for", [Problem(offset=0, message="reserved identifier: for")])


@pytest.mark.parametrize(
    ("words", "repaired"),
    [
        ("ERROR: <input>:1:1: Syntax error: a\nERROR: <input>:4294967295:0: b", "ERROR: <input>:1:1: Syntax error: a"),
        (
            "ERROR: <input>:1:3: Syntax error: no viable alternative at input '.true'",
            "ERROR: <input>:1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER",
        ),
        ("ERROR: <input>:1:3: Syntax error: expecting '\\u003F'", "ERROR: <input>:1:3: Syntax error: expecting '?'"),
        ("ERROR: <input>:1:1: Syntax error: <EOF>", "ERROR: <input>:1:0: Syntax error: <EOF>"),
    ],
)
def test_what_they_word_otherwise_is_put_right(theirs, words, repaired):
    """cel-cpp and cel-go differ in a few things."""
    theirs(words)
    assert reworded("a b", OURS) == repaired


def test_the_package_may_be_missing(monkeypatch):
    """There is no wheel of it for every machine."""
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    syntax_errors._environment.cache_clear()
    assert syntax_errors._environment() is None
    syntax_errors._environment.cache_clear()
