"""Macros at run time: errors, cost, what they run over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cel.evaluation import cost, error, value

numbers = st.lists(st.integers(-5, 5), max_size=6)


@pytest.mark.parametrize(
    "macro", ["all(e, true)", "exists(e, true)", "map(e, e)", "filter(e, true)", "exists_one(e, true)"]
)
@pytest.mark.parametrize(("variable", "name"), [(1, "types.Int"), ("a", "types.String"), (None, "types.Null")])
def test_what_is_no_list_and_no_map_cannot_be_run_over(macro, variable, name):
    """The message is Go's."""
    assert error(f"a.{macro}", a=variable) == f"got '{name}', expected iterable type"


def test_with_two_variables_the_message_is_another():
    """As in cel-go."""
    assert error("a.all(i, e, true)", a=1) == "unsupported comprehension range type: types.Int"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[1, 2].all(e, a.nope)", "no such key: nope"),
        ("[1, 2].exists(e, a.nope)", "no such key: nope"),
        ("[1, 2].exists_one(e, a.nope)", "no such key: nope"),
        ("[1, 2].map(e, a.nope)", "no such key: nope"),
        ("[1, 2].filter(e, a.nope)", "no such key: nope"),
        ("[1, 2].map(e, a.nope, e)", "no such key: nope"),
        ("{'k': 1}.transformMap(k, v, a.nope)", "no such key: nope"),
        ("{'k': 1}.transformMap(k, v, a.nope, v)", "no such key: nope"),
        ("{'k': 1}.transformMapEntry(k, v, a.nope)", "no such key: nope"),
        ("[1].filter(e, b)", "no such overload"),
        ("[1].all(e, b)", "no such overload"),
        ("[1].exists_one(e, b)", "no such overload"),
        ("[1, 2].transformMapEntry(i, e, {'same': e})", "insert failed: key same already exists"),
        ("[1].transformMapEntry(i, e, b)", "no such overload: cel.@mapInsert(map, int)"),
    ],
)
def test_an_error_in_the_body_is_the_macros(expression, message):
    """Unless another element settles it."""
    assert error(expression, a={}, b=1) == message


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[1, 2].all(e, e == 1 ? a.nope : false)", False),
        ("[1, 2].exists(e, e == 1 ? a.nope : true)", True),
        ("[1, 2].all(e, e == 2 ? a.nope : false)", False),
    ],
)
def test_an_element_that_settles_it_makes_up_for_errors(expression, expected):
    """Of ``all`` and ``exists``, on whichever side it stands."""
    assert value(expression, a={}) is expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[1, 2].map(e, e == 1 ? a.x : a.y)", "no such key: x"),
        ("[1, 2].filter(e, e == 1 ? a.x : a.y)", "no such key: y"),
        ("[1, 2].exists_one(e, e == 1 ? a.x : a.y)", "no such key: y"),
        ("{'k': 1, 'l': 2}.transformMap(k, v, v == 1 ? a.x : a.y)", "no such key: x"),
    ],
)
def test_of_several_errors_one_is_kept(expression, message):
    """Of a transformation the first, of a predicate the last."""
    assert error(expression, a={}) == message


def test_exists_one_has_no_way_to_make_up_for_an_error():
    """It counts all of them."""
    assert error("[1, 2, 3].exists_one(e, e == 2 ? a.nope : true)", a={}) == "no such key: nope"


@pytest.mark.property
@given(numbers)
def test_filtering_and_mapping_are_those_of_python(values):
    """For every list."""
    assert value("a.filter(e, e > 0)", a=values) == [each for each in values if each > 0]
    assert value("a.map(e, e * 2)", a=values) == [each * 2 for each in values]
    assert value("a.map(e, e > 0, e * 2)", a=values) == [each * 2 for each in values if each > 0]
    assert value("a.transformList(i, e, i * e)", a=values) == [i * each for i, each in enumerate(values)]


@pytest.mark.property
@given(numbers)
def test_quantifiers_are_those_of_python(values):
    """For every list."""
    positive = [each > 0 for each in values]
    assert value("a.all(e, e > 0)", a=values) is all(positive)
    assert value("a.exists(e, e > 0)", a=values) is any(positive)
    assert value("a.exists_one(e, e > 0)", a=values) is (sum(positive) == 1)
    assert value("!a.exists(e, e > 0) == a.all(e, !(e > 0))", a=values) is True


@pytest.mark.property
@given(st.dictionaries(st.text(max_size=2), st.integers(-5, 5), max_size=5))
def test_maps_are_transformed_entry_by_entry(given_):
    """Keys stay, or are made anew."""
    assert value("a.transformMap(k, v, v + 1)", a=given_) == {key: found + 1 for key, found in given_.items()}
    swapped = "a.transformMapEntry(k, v, {k + 'x': v})"
    assert value(swapped, a=given_) == {f"{key}x": found for key, found in given_.items()}


@pytest.mark.property
@given(numbers, numbers)
def test_a_longer_list_never_costs_less(values, more):
    """Of a macro that looks at all elements."""
    for macro in (
        "map(e, e + 1)",
        "filter(e, e > 0)",
        "all(e, true)",
        "exists_one(e, e == 1)",
        "transformList(i, e, e)",
    ):
        assert cost(f"a.{macro}", a=values + more) >= cost(f"a.{macro}", a=values)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[1, 2].all(e, e > 0)", 11),
        ("[1, 2].exists(e, e > 5)", 13),
        ("[1, 2].exists_one(e, e > 5)", 6),
        ("[1, 2].map(e, e)", 27),
        ("[1, 2].filter(e, e > 5)", 5),
        ("{'a': 1}.transformMap(k, v, v)", 5),
    ],
)
def test_what_a_macro_costs_around_its_body(expression, expected):
    """What its expansion costs in cel-go."""
    assert cost(expression) == expected


def test_an_inner_macro_may_use_the_variable_of_an_outer_one():
    """And hide it."""
    assert value("[1, 2].map(e, [10].map(f, e + f))") == [[11], [12]]
    assert value("[1, 2].map(e, [10].map(e, e))") == [[10], [10]]
    assert value("[1].map(a, a)", a=5) == [1]


def test_a_name_for_a_value_is_worked_out_once():
    """``optMap`` and ``sortBy``: it costs once, however often it is used."""
    once, thrice = cost("optional.of(a).optMap(e, e)", a=1), cost("optional.of(a).optMap(e, e + e + e)", a=1)
    assert thrice - once == 4


def test_an_error_of_a_named_value_is_the_whole_ones():
    """Each time it is used."""
    assert error("optional.of(a.nope).optMap(e, e)", a={}) == "no such key: nope"
