"""Which types go together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.checker.unification import assign, equivalent, most_general, substitute, unwrap_optional
from gateway.cel.values import types
from gateway.cel.values.types import list_of, optional_of, parameter, written

kinds = st.recursive(
    st.sampled_from(["int", "uint", "double", "string", "bool", "bytes", "timestamp", "null", "dyn", "net.IP", "a.M"]),
    lambda inner: st.builds("list({})".format, inner) | st.builds("map({}, {})".format, inner, inner),
    max_leaves=5,
).map(written)


def fits(given_, wanted):
    return assign({}, (written(given_),), (written(wanted),))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int", "int"),
        ("int", "dyn"),
        ("dyn", "list(int)"),
        ("list(int)", "list(dyn)"),
        ("list(dyn)", "list(int)"),
        ("map(string, int)", "map(dyn, dyn)"),
        ("null", "timestamp"),
        ("null", "net.IP"),
        ("a.M", "null"),
        ("type(int)", "type(string)"),
        ("optional_type(int)", "optional_type(dyn)"),
        ("list(int)", "A"),
        ("list(int)", "list(A)"),
        ("A", "B"),
    ],
)
def test_these_go_together(one, other):
    """dyn with everything, null with what has no zero value of its own, type parameters with what they stand for."""
    assert fits(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int", "uint"),
        ("int", "string"),
        ("null", "int"),
        ("null", "list(int)"),
        ("list(int)", "list(string)"),
        ("list(int)", "map(int, int)"),
        ("map(string, int)", "map(int, int)"),
        ("net.IP", "net.CIDR"),
        ("a.M", "b.M"),
        ("timestamp", "duration"),
        ("optional_type(int)", "optional_type(string)"),
        ("int", "list(A)"),
    ],
)
def test_these_do_not(one, other):
    """Nothing is converted."""
    assert not fits(one, other)


@pytest.mark.property
@given(kinds)
def test_a_type_goes_with_itself_and_with_dyn(kind):
    """In both directions."""
    for other in (kind, types.DYN, parameter("A")):
        assert assign({}, (kind,), (other,))
        assert assign({}, (other,), (kind,))


@pytest.mark.property
@given(kinds, kinds)
def test_going_together_does_not_depend_on_the_order(one, other):
    """Of two types without parameters."""
    assert assign({}, (one,), (other,)) == assign({}, (other,), (one,))


def test_a_parameter_stands_for_one_type_throughout():
    """``f(A, A)`` takes two of the same, or one and a dyn."""
    wanted = (parameter("A"), parameter("A"))
    assert assign({}, (types.INT, types.INT), wanted)
    assert not assign({}, (types.INT, types.STRING), wanted)
    assert assign({}, (types.INT, types.DYN), wanted)


def test_what_a_parameter_stands_for_becomes_more_general():
    """An int and a dyn are both dyn."""
    known = {}
    assert assign(known, (list_of(types.INT), list_of(types.DYN)), (parameter("A"), parameter("A")))
    assert substitute(known, parameter("A")) == list_of(types.DYN)


def test_a_parameter_cannot_stand_for_what_it_is_in():
    """``A = list(A)`` would have no end."""
    assert not assign({}, (list_of(parameter("A")),), (parameter("A"),))


def test_a_failed_attempt_leaves_no_trace():
    """What it noted for new parameters is gone, and what it made more general is as it was."""
    known = {parameter("B"): list_of(types.INT)}
    given_ = (types.INT, list_of(types.DYN), types.INT)
    assert not assign(known, given_, (parameter("A"), parameter("B"), types.STRING))
    assert known == {parameter("B"): list_of(types.INT)}


@pytest.mark.parametrize(("given_", "wanted"), [((), (types.INT,)), ((types.INT,), ())])
def test_the_numbers_of_types_must_be_the_same(given_, wanted):
    """A call with too few arguments fits nothing."""
    assert not assign({}, given_, wanted)


@pytest.mark.parametrize(
    ("one", "other", "general"),
    [
        ("int", "dyn", "dyn"),
        ("dyn", "int", "dyn"),
        ("list(int)", "list(dyn)", "list(dyn)"),
        ("list(dyn)", "list(int)", "list(dyn)"),
        ("int", "int", "int"),
        ("net.IP", "net.CIDR", "net.CIDR"),
        ("type(int)", "type(string)", "type(int)"),
        ("map(string, dyn)", "map(string, int)", "map(string, dyn)"),
    ],
)
def test_of_two_types_the_one_that_says_less(one, other, general):
    """It is what both are."""
    assert most_general(written(one), written(other)) == written(general)


def test_a_parameter_that_stands_for_nothing_is_dyn_in_the_end():
    """The empty list is a list of anything."""
    assert substitute({}, list_of(parameter("A"))) == list_of(parameter("A"))
    assert substitute({}, list_of(parameter("A")), finally_dyn=True) == list_of(types.DYN)


def test_what_stands_for_something_that_stands_for_something_is_followed():
    """To the end, within other types too."""
    known = {parameter("A"): list_of(parameter("B")), parameter("B"): types.INT}
    assert substitute(known, optional_of(parameter("A"))) == optional_of(list_of(types.INT))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("A", "B", True),
        ("list(A)", "list(B)", True),
        ("A", "int", False),
        ("list(int)", "list(int)", True),
        ("map(A, int)", "map(B, string)", False),
        ("a.M", "b.M", False),
        ("type", "type(int)", False),
    ],
)
def test_types_are_equivalent_but_for_the_names_of_parameters(one, other, expected):
    """And dyn is only itself."""
    assert equivalent(written(one), written(other)) is expected


def test_what_is_in_an_optional():
    """And whether it was one."""
    assert unwrap_optional(optional_of(types.INT)) == (types.INT, True)
    assert unwrap_optional(types.INT) == (types.INT, False)
