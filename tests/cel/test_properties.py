"""What holds for every text and every object."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cel.condition import Condition
from gateway.cel.libraries.netip import Address, Unreadable, read_address
from gateway.cel.match_conditions import compile_condition
from gateway.cel.program import EvaluationError, NeedsAuthorization
from gateway.cel.values.timestamps import Timestamp, parse_timestamp, timestamp_text
from tests.cel.world import Given, worked_out

WORDS = [
    *(
        "object",
        "request",
        "authorizer",
        "x",
        "1",
        "-1",
        "2u",
        "1.5",
        "'a'",
        "b'b'",
        "true",
        "null",
        "[",
        "]",
        "(",
        ")",
    ),
    *("{", "}", ".", "?", ":", ",", "!", "-", "+", "*", "/", "%", "==", "<", "in", "&&", "||", "size", "map", "all"),
    *(
        "exists",
        "has",
        "spec",
        "matches",
        "format",
        "optMap",
        "sort",
        "quantity",
        "int",
        "string",
        "dyn",
        "duration",
        " ",
    ),
]
NAMES = ["a", "b", "spec", "x y", "é"]

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
documents = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
)


@st.composite
def expressions(draw, depth=3):
    """Expressions that parse, and often have a type."""
    if depth == 0:
        return draw(
            st.sampled_from(["object", "object.a", "object.b", "1", "1.5", "'a'", "[1, 2]", "true", "null", "{'a': 1}"])
        )
    part = expressions(depth=depth - 1)
    form = draw(
        st.sampled_from(
            [
                "({} == {})",
                "({} + {})",
                "({} < {})",
                "({} in {})",
                "({} && {})",
                "({} || {})",
                "({} ? {} : {})",
                "dyn({})",
                "dyn({}).map(x, {})",
                "dyn({}).filter(x, {})",
                "dyn({}).all(x, {})",
                "dyn({}).exists(i, x, {})",
                "dyn({}).a",
                "dyn({}).?a.orValue({})",
                "dyn({})[{}]",
                "string(dyn({}))",
                "size(dyn({}))",
                "dyn({}).contains(string(dyn({})))",
                "type({})",
                "[{}, {}]",
                "'%s'.format([{}])",
            ]
        )
    )
    return form.format(*(draw(part) for _ in range(form.count("{}"))))


FEWER = settings(max_examples=settings().max_examples // 2)


@pytest.mark.property
@given(st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=20).map("".join))
def test_every_text_compiles_or_says_why_not(text):
    """compile_condition never raises; what it gives has an error that is not empty, or none."""
    condition = compile_condition(text)
    assert isinstance(condition, Condition)
    assert condition.error is None or condition.error


@pytest.mark.property
@FEWER
@given(expressions(), documents, documents)
def test_every_condition_has_an_outcome_for_every_object(expression, first, second):
    """Evaluating never raises: true, false, an error or a question. An error of Python's own is none of CEL's."""
    outcome = (
        compile_condition(f"dyn({expression}) == true").evaluate(Given(object=first, oldObject=second), {}).outcome
    )
    assert isinstance(outcome, bool | EvaluationError | NeedsAuthorization)
    assert "internal error" not in getattr(outcome, "message", "")


@pytest.mark.property
@FEWER
@given(expressions(), documents)
def test_evaluating_changes_nothing(expression, document):
    """The object is the same afterwards, and a second time comes to the same."""
    before = json.dumps(document)
    condition, variables = compile_condition(f"dyn({expression}) == true"), Given(object=document)
    assert condition.evaluate(variables, {}) == condition.evaluate(variables, {})
    assert json.dumps(document) == before


@pytest.mark.property
@FEWER
@given(expressions(), st.dictionaries(st.sampled_from(["a", "b"]), documents), documents)
def test_members_that_are_not_named_do_not_matter(expression, document, more):
    """A condition that only names members comes to the same for an object with more of them."""
    named = expression.replace("object", "dyn(object.a)") if "object" in expression else expression
    condition = compile_condition(f"dyn({named}) == true")
    larger = {**document, "never named": more}
    assert condition.evaluate(Given(object=document), {}) == condition.evaluate(Given(object=larger), {})


@pytest.mark.property
@given(documents)
def test_an_object_equals_its_copy(document):
    """Equality is by value, however deep."""
    copy = json.loads(json.dumps(document))
    assert compile_condition("object == oldObject").evaluate(Given(object=document, oldObject=copy), {}).outcome is True


@pytest.mark.property
@given(st.integers(0, 2**128 - 1))
def test_addresses_read_what_they_write(value):
    """The canonical text of an address is that address."""
    for version, bits in ((4, 32), (6, 128)):
        address = Address(version, value % 2**bits)
        if not address.mapped:
            assert read_address(str(address)) == address


@pytest.mark.property
@given(st.text(alphabet="0123456789abcdf:.%/ ", max_size=40))
def test_every_text_is_an_address_or_none(text):
    """read_address raises nothing else."""
    message = "ParseAddr("
    try:
        read_address(text)
    except Unreadable as error:
        message = error.message
    assert message.startswith("ParseAddr(")


@pytest.mark.property
@given(st.integers(-62_135_596_800, 253_402_300_799), st.integers(0, 999_999_999))
def test_timestamps_read_what_they_write(seconds, nanos):
    """To the nanosecond, from the year 1 to the year 9999."""
    moment = Timestamp(seconds, nanos)
    assert parse_timestamp(timestamp_text(moment)) == moment


@pytest.mark.property
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6))
def test_sums_overflow_or_are_exact(values):
    """An integer never wraps around."""
    found = worked_out(f"dyn({values}).sum()".replace("dyn([])", "[0].filter(x, false)"))
    total, fits = 0, True
    for value in values:
        total += value
        fits = fits and -(2**63) <= total < 2**63
    assert found.detail == {"int": str(total)} if fits else found.kind in {"error", "compile"}
