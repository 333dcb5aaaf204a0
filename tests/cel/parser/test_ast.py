"""Trees: their parts, their depth."""

import pytest

from gateway.cel.parser import ast
from gateway.cel.parser.macros import macros_of
from gateway.cel.versions import NEWEST
from tests.cel.parser.unparsing import tree


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1", 0),
        ("a", 0),
        ("a.b", 1),
        ("f(a, b)", 2),
        ("a.f(b)", 2),
        ("[a, b, c]", 3),
        ("{a: b, c: d}", 4),
        ("A{b: c}", 1),
    ],
)
def test_a_node_has_parts(text, count):
    """Those directly below it, a target before the arguments."""
    assert len(ast.parts(tree(text))) == count


def test_a_comprehension_has_five_parts():
    """What it runs over, where it begins, when it goes on, how, and what comes of it."""
    assert len(ast.parts(tree("l.all(x, x)", macros_of(NEWEST)))) == 5


def test_walking_meets_each_node_once_parents_first():
    """A node with two parents as well."""
    root = tree("o.f().optMap(x, x)", macros_of(NEWEST))
    met = list(ast.walk(root))
    assert met[0] is root
    assert len(met) == len(set(met))


def test_nodes_are_themselves():
    """Two nodes of the same text are two: what is found out about one is not true of the other."""
    one, other = tree("a"), tree("a")
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("1", (1, 0)),
        ("a.b.c", (3, 2)),
        ("a + b", (2, 1)),
        ("!a", (2, 0)),
        ("a && b", (2, 0)),
        ("f(a)", (2, 0)),
        ("a.f()", (2, 1)),
        ("a[0]", (2, 1)),
        ("a in b", (2, 1)),
    ],
)
def test_levels_and_what_counts_against_the_limit(text, depth):
    """cel-go does not count && and ||, ! and minus, and calls of functions."""
    assert ast.depth(tree(text)) == depth


def test_a_walk_that_would_not_end_is_given_up():
    """A chain of optMaps has a node with two parents at each link."""
    root = tree("o" + ".optMap(x, x)" * 2, macros_of(NEWEST))
    for _ in range(30):
        root = ast.Call(offset=0, function="f", arguments=(root, root))
    assert ast.depth(root)[0] > 500_000
