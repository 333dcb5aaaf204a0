"""What macros stand for, and what their arguments must be."""

import pytest

from gateway.cel.parser.ast import Fold, Repetition
from gateway.cel.parser.macros import macros_of
from gateway.cel.versions import NEWEST, Version
from tests.cel.evaluation import issues, value
from tests.cel.parser.unparsing import shape, tree

MACROS = macros_of(NEWEST)


@pytest.mark.parametrize(
    ("text", "repetition"),
    [
        ("l.all(x, p)", Repetition.ALL),
        ("l.all(i, x, p)", Repetition.ALL),
        ("l.exists(x, p)", Repetition.EXISTS),
        ("l.exists_one(x, p)", Repetition.EXISTS_ONE),
        ("l.existsOne(i, x, p)", Repetition.EXISTS_ONE),
        ("l.map(x, t)", Repetition.LIST),
        ("l.filter(x, p)", Repetition.LIST),
        ("l.transformList(i, x, t)", Repetition.LIST),
        ("m.transformMap(k, v, t)", Repetition.MAP),
        ("m.transformMapEntry(k, v, e)", Repetition.MAP),
        ("l.sortBy(x, k)", Repetition.BIND),
    ],
)
def test_a_macro_stands_for_a_comprehension(text, repetition):
    """Of its own kind."""
    found = tree(text, MACROS)
    assert isinstance(found, Fold)
    assert found.repetition is repetition


@pytest.mark.parametrize(
    "text", ["all(x, p)", "l.all(x)", "l.all(a, b, c, d)", "l.map(x)", "a.has(b)", "has(a, b)", "l.exist(x, p)"]
)
def test_a_call_with_other_arguments_is_no_macro(text):
    """It is a call of a function, which the checker may know or not."""
    assert shape(tree(text, MACROS)) == shape(tree(text))


def test_has_tests_a_member():
    """The last one of a selection."""
    assert shape(tree("has(a.b.c)", MACROS)) == ("has", ("select", ("name", "a"), "b"), "c")


def test_nodes_of_a_macro_stand_at_its_opening_bracket():
    """There errors about them point."""
    found = tree("l.all(x, p)", MACROS)
    assert (found.offset, found.condition.offset, found.step.offset) == (5, 5, 5)


def test_optmap_works_its_target_out_once_for_each_question():
    """``o.hasValue() ? optional.of(...) : optional.none()``."""
    assert shape(tree("o.optMap(x, x)", MACROS))[:2] == ("call", "_?_:_")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("has(a)", "1:5: invalid argument to has() macro"),
        ("has(a[0])", "1:6: invalid argument to has() macro"),
        ("[1].all(1, true)", "1:9: argument must be a simple name"),
        ("[1].all(a.b, true)", "1:10: argument must be a simple name"),
        ("[1].exists(i, 1, true)", "1:15: argument must be a simple name"),
        ("[1].map(1, 2)", "1:9: argument is not an identifier"),
        ("[1].filter(1, 2)", "1:12: argument is not an identifier"),
        ("[1].all(i, i, true)", "1:12: duplicate variable name: i"),
        ("[1].all(__result__, true)", "1:9: iteration variable overwrites accumulator variable"),
        ("optional.of(1).optMap(1, 2)", "1:23: optMap() variable name must be a simple identifier"),
        ("optional.of(1).optFlatMap(a.b, 2)", "1:28: optFlatMap() variable name must be a simple identifier"),
        (
            "{1: 2}.sortBy(x, x)",
            "1:1: sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        ),
    ],
)
def test_what_cannot_be_an_argument_is_an_error_at_its_place(text, problem):
    """In cel-go's words."""
    assert problem in [found.replace("varible", "variable") for found in issues(text)]


# --------------------------------------------------------------------------------------------------- values
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[1, 2, 3].all(e, e > 0)", True),
        ("[1, 2, 3].all(i, e, i < e)", True),
        ("[].all(e, false)", True),
        ("{'a': 1}.all(k, k == 'a')", True),
        ("{'a': 1}.all(k, v, k == 'a' && v == 1)", True),
        ("[1, 2].exists(e, e == 2)", True),
        ("[1, 2].exists(i, e, i == e)", False),
        ("[].exists(e, true)", False),
        ("[1, 2, 2].exists_one(e, e == 1)", True),
        ("[1, 2, 2].exists_one(e, e == 2)", False),
        ("[5, 6].existsOne(i, e, i == 1)", True),
        ("[1, 2].map(e, e * 2)", [2, 4]),
        ("[1, 2].map(e, e > 1, e * 2)", [4]),
        ("{'a': 1}.map(k, k)", ["a"]),
        ("[1, 2, 3].filter(e, e != 2)", [1, 3]),
        ("[5, 6].transformList(i, e, i * e)", [0, 6]),
        ("[5, 6].transformList(i, e, i > 0, e)", [6]),
        ("{'a': 1}.transformList(k, v, v)", [1]),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v + 1)", {"a": 2, "b": 3}),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v)", {"b": 2}),
        ("{'a': 'x'}.transformMapEntry(k, v, {v: k})", {"x": "a"}),
        ("{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, k == 'a', {v: k})", {"x": "a"}),
        ("optional.of(1).optMap(e, e + 1).value()", 2),
        ("optional.none().optMap(e, e).hasValue()", False),
        ("optional.of(1).optFlatMap(e, optional.of(e + 1)).value()", 2),
        ("['bb', 'a'].sortBy(e, e.size())", ["a", "bb"]),
        ("[3, 1, 2].sortBy(e, -e)", [3, 2, 1]),
        ("[[1, 2], [3]].all(l, l.all(e, e > 0))", True),
        ("[1].map(e, [2].map(e, e))", [[2]]),
    ],
)
def test_what_a_macro_comes_to(expression, expected):
    """Over lists and maps, with one variable and with two."""
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("key", "since"),
    [
        (("all", 2, True), Version(1, 28)),
        (("optMap", 2, True), Version(1, 28)),
        (("all", 3, True), Version(1, 32)),
        (("transformMap", 3, True), Version(1, 32)),
        (("sortBy", 2, True), Version(1, 34)),
    ],
)
def test_a_macro_is_there_from_its_version_on(key, since):
    """And not before."""
    assert key in macros_of(since)
    assert since <= Version(1, 28) or key not in macros_of(Version(1, since.minor - 1))
