"""Names, selections and indexes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values.containers import NONE, Optional, made_of
from tests.cel.evaluation import cost, error, value

POD = {"metadata": {"name": "web", "labels": {"app": "a"}}, "spec": {"containers": [{"image": "x"}, {"image": "y"}]}}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.metadata.name", "web"),
        ("a['metadata']['name']", "web"),
        ("a.metadata.labels['app']", "a"),
        ("a.spec.containers[1].image", "y"),
        ("a.spec.containers[1u].image", "y"),
        ("a.spec.containers[1.0].image", "y"),
        ("a.spec.containers[a.spec.containers.size() - 1].image", "y"),
        ("(true ? a.metadata : a.spec).name", "web"),
        ("(false ? a : {'x': {'y': 1}}).x.y", 1),
        ("{'a': {'b': [1, 2]}}.a.b[1]", 2),
        ("[[1], [2]][1][0]", 2),
        ("dyn({1: 'x'})[1u]", "x"),
        ("dyn({1: 'x'})[1.0]", "x"),
        ("{true: 'x'}[true]", "x"),
    ],
)
def test_a_chain_leads_to_a_value(expression, expected):
    """Over members and indexes, constant ones and others."""
    assert value(expression, a=POD) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a.nope", "no such key: nope"),
        ("a.metadata.nope.more", "no such key: nope"),
        ("a.metadata.name.more", "no such key: more"),
        ("a['nope']", "no such key: nope"),
        ("a[1]", "no such key: 1"),
        ("a[true]", "no such key: true"),
        ("a[1.5]", "no such key: 1.5"),
        ("a.spec.containers[2]", "index out of bounds: 2"),
        ("a.spec.containers[-1]", "index out of bounds: -1"),
        ("a.spec.containers['0']", "unsupported index type 'string' in list"),
        ("a.spec.containers[true]", "unsupported index type 'bool' in list"),
        ("a.spec.containers[0.5]", "unsupported index value 0.5 in list"),
        ("a.spec.containers[1e30]", "unsupported index value 1e+30 in list"),
        ("a.spec.containers.image", "unsupported index type 'string' in list"),
        ("a[b]", "invalid qualifier type: types.Null"),
        ("a[c]", "invalid qualifier type: *types.baseList"),
        ("b.x", "no such key: x"),
    ],
)
def test_a_chain_that_leads_nowhere_is_an_error(expression, message):
    """It says where it ended."""
    assert error(expression, a=POD, b=None, c=[]) == message


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.?metadata.name", Optional("web")),
        ("a.?nope.name", NONE),
        ("a.metadata.?nope", NONE),
        ("a[?'metadata']", Optional(POD["metadata"])),
        ("a.spec.containers[?5]", NONE),
        ("a.spec.containers[?0].image", Optional("x")),
        ("optional.of(a).metadata.name", Optional("web")),
        ("optional.of(a).nope", NONE),
        ("optional.none().anything.more", NONE),
        ("a.?metadata.?labels.?app.orValue('z')", "a"),
        ("a.?metadata.?labels.?nope.orValue('z')", "z"),
        ("a.metadata.name.?more", NONE),
    ],
)
def test_from_the_first_question_mark_on_what_is_not_there_is_nothing(expression, expected):
    """And what is there is an optional."""
    assert value(expression, a=POD) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("has(a.metadata.name)", True),
        ("has(a.metadata.nope)", False),
        ("has(a.metadata.name.more)", False),
        ("has(a.?nope.more)", False),
        ("has(a.?metadata.name)", True),
        ("has({'a': null}.a)", True),
        ("has((true ? a : b).metadata)", True),
    ],
)
def test_has_tests_only_the_last_member(expression, expected):
    """A null is there."""
    assert value(expression, a=POD, b={}) is expected


def test_has_is_an_error_if_the_way_leads_nowhere():
    """Only the last member may be missing."""
    assert error("has(a.nope.more)", a=POD) == "no such key: nope"


def test_a_choice_that_is_no_bool_is_an_error():
    """Neither branch is taken."""
    assert error("b ? a.x : a.y", a=POD, b=1) == "no such overload"


def test_integers_that_no_int64_holds_are_doubles_at_the_end_of_a_chain():
    """And as elements."""
    assert value("type(a.n) == double && type(b[0]) == double", a={"n": 2**70}, b=[2**70]) is True


def test_a_map_with_keys_of_other_kinds_has_no_members_by_name():
    """``m.a`` has a text as its key."""
    assert error("a.x", a=made_of([(1, "y")])) == "no such key: x"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a", 1),
        ("a.metadata", 2),
        ("a.metadata.name", 3),
        ("a.spec.containers[0].image", 5),
        ("a[b]", 2),
        ("has(a.metadata)", 1),
        ("a.?metadata.name", 3),
        ("true ? a : b", 0),
        ("(true ? a : b).metadata", 1),
    ],
)
def test_each_qualifier_costs_one_and_so_does_the_beginning(expression, expected):
    """Unless the chain is a branch of ``? :`` or an index itself. The beginning of ``has()`` is free."""
    assert cost(expression, a=POD, b="metadata") == expected


@pytest.mark.property
@given(st.lists(st.integers(), min_size=1, max_size=5), st.integers(-10, 10))
def test_an_index_is_in_bounds_or_an_error(values, index):
    """Negative ones do not count from the end."""
    expression = f"a[{index}] == b"
    if 0 <= index < len(values):
        assert value(expression, a=values, b=values[index]) is True
    else:
        assert error(expression, a=values, b=0) == f"index out of bounds: {index}"


@pytest.mark.property
@given(st.dictionaries(st.text(max_size=3), st.integers(-5, 5), max_size=4), st.text(max_size=3))
def test_asking_first_and_asking_with_a_question_mark_agree(given_, key):
    """``k in m ? optional.of(m[k]) : optional.none()`` is ``m[?k]``."""
    assert value("a[?b] == (b in a ? optional.of(a[b]) : optional.none())", a=given_, b=key) is True
