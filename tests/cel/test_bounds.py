"""Everything ends, whatever a text or a value is made of: in compiling, in evaluating, and in what is said of it."""

import pytest

from gateway.cel.budget import LARGEST_COST, LARGEST_EFFORT
from gateway.cel.environment import CompileError, Environment
from gateway.cel.interpreter.frame import Frame
from gateway.cel.program import UNFINISHED, Share
from gateway.cel.values.display import display
from gateway.cel.values.faults import Aborted

ENVIRONMENT = Environment({"text": "string", "other": "string", "object": "dyn"})

LINKS = 40
"""What doubles forty times has a million million parts."""

SHARED = "dyn([dyn(1)]" + ".map(x, dyn([x, x]))" * LINKS + ")"
"""A list that holds a list twice, which holds a list twice, and so on: small in memory, endless to walk over."""

LONG = {"text": "é" * 1_000_000, "other": "é" * 999_999 + "f"}


def outcome(expression, **values):
    return ENVIRONMENT.compile(expression).evaluate({"object": None, "text": "", "other": ""} | values).outcome


def message(expression, **values):
    return getattr(outcome(expression, **values), "message", "it has a value")


# ------------------------------------------------------------------------------------------------ compiling
@pytest.mark.parametrize(
    "link", [".map(x, {x: x})", ".map(x, {'a': {x: x}})", ".map(x, optional.of({x: x}))", ".map(x, {[x]: [[x]]})"]
)
@pytest.mark.parametrize("start", ["[1]", "[[]]", "[{}]", "[object]"])
def test_a_type_that_doubles_at_every_link_is_refused(start, link):
    """It is an error as soon as it is too large, instead of endless work."""
    if start == "[object]" and "optional" not in link:
        start = "[[object]]"
    with pytest.raises(CompileError, match="a type exceeds the limit of 1000 types within it"):
        ENVIRONMENT.compile(start + link * LINKS)


def test_literals_may_nest_as_deep_as_kubernetes_allows():
    """A map in a map has two types more; 120 of them are no error."""
    assert ENVIRONMENT.compile("{'a': " * 120 + "1" + "}" * 120).variables == ()


def test_an_error_of_compiling_is_bounded_however_much_is_wrong():
    """A hundred problems are shown, and how many more there are."""
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(" + ".join(f"nope{number}" for number in range(240)))
    assert str(caught.value).count("ERROR:") == 100
    assert str(caught.value).endswith("140 more errors were truncated")


def test_a_line_that_is_too_long_is_not_shown():
    """Each problem would repeat it."""
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile("nope + '" + "x" * 20_000 + "' + nope")
    assert len(str(caught.value)) < 300


# ----------------------------------------------------------------------------------------------- evaluating
@pytest.mark.parametrize(
    "expression",
    [
        f"{SHARED} == {SHARED}",
        f"{SHARED} != {SHARED}",
        f"{SHARED} in [{SHARED}]",
        f"{SHARED}.max() == 1",
        f"{SHARED}.min() == 1",
        f"{SHARED}.sum() == 1",
        f"{SHARED}.isSorted()",
        f"{SHARED}.indexOf(1) == 0",
        f"{SHARED}.lastIndexOf(1) == 0",
        f"'%s'.format([{SHARED}]) == ''",
        f"sets.contains({SHARED}, {SHARED})",
        f"google.protobuf.ListValue{{values: {SHARED}}} == []",
        f"google.protobuf.Struct{{fields: {{'a': {SHARED}}}}} == {{}}",
        f"[{SHARED}, {SHARED}].distinct().size() == 1",
    ],
)
def test_walking_over_a_value_that_shares_its_parts_ends(expression):
    """Work is counted while it is done, not afterwards."""
    assert message(expression) == "operation interrupted"


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(500).map(x, text).sort() == []",
        "lists.range(900).map(x, text).isSorted()",
        "lists.range(900).map(x, text).max() == ''",
        "lists.range(300).map(x, text + '').distinct() == []",
        "lists.range(1000).all(x, [text] == [text])",
        "lists.range(1000).all(x, dyn(text) <= dyn(other) || true)",
        "lists.range(1000).all(x, [text].indexOf(other) == -1)",
        "lists.range(1000).all(x, !(text in [other, text + 'x'].filter(y, y != text)))",
    ],
)
def test_comparing_long_texts_many_times_ends(expression):
    """A list of the same long text is small in memory; each comparison reads all of it."""
    assert message(expression, **LONG) in {"operation interrupted", "operation cancelled: actual cost limit exceeded"}


@pytest.mark.parametrize("expression", [f"optional.unwrap(dyn([dyn(optional.of(dyn(1))), {SHARED}])) == []"])
def test_a_value_in_a_message_is_cut(expression):
    """What shares its parts would make a message of any length."""
    found = message(expression)
    assert found.startswith("value [[[[")
    assert len(found) < 10_100


def test_short_values_are_displayed_whole():
    """Only what is longer than 10,000 characters is cut."""
    assert display([1] * 3000) == f"[{', '.join(['1'] * 3000)}]"
    assert display([1] * 4000).endswith("…")


@pytest.mark.parametrize("limit", [0, 1, 5, 100, LARGEST_COST])
def test_a_limit_of_cost_is_kept_to_within_one_step(limit):
    """An expression that goes on gets the error, and costs hardly more than its limit."""
    program = ENVIRONMENT.compile("lists.range(100000).all(x, lists.range(1000).all(y, x + y >= 0))")
    evaluation = program.evaluate({}, limit=limit)
    assert evaluation.outcome.message == "operation cancelled: actual cost limit exceeded"
    assert evaluation.cost <= max(limit, 100_000) + 10_000


# ---------------------------------------------------------------------------------------------------- frame
def test_a_charge_may_reach_the_limit_and_not_go_beyond():
    """The limit itself is affordable."""
    frame = Frame([], limit=10)
    frame.charge(10)
    frame.settle()
    with pytest.raises(Aborted, match="actual cost limit exceeded"):
        frame.charge(1)


def test_what_was_added_without_a_charge_is_found_when_settling():
    """Parts that cost a constant add to the cost directly."""
    frame = Frame([], limit=10)
    frame.cost += 11
    with pytest.raises(Aborted, match="actual cost limit exceeded"):
        frame.settle()


def test_effort_has_a_limit_of_its_own():
    """Whatever the cost is."""
    frame = Frame([], limit=10)
    frame.strive(LARGEST_EFFORT)
    with pytest.raises(Aborted, match="operation interrupted"):
        frame.strive(1)


@pytest.mark.parametrize(("value", "effort"), [("x" * 4096, 0), ("x" * 8000, 500), (b"x" * 8000, 500), (7, 0)])
def test_only_large_values_are_heeded(value, effort):
    """A sixteenth of their length."""
    frame = Frame([])
    frame.heed(value)
    assert frame.effort == effort


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("text.findAll('a').size() > 0", "operation interrupted"),
        ("text.findAll('').size() > 0", "operation interrupted"),
        ("text.findAll('a', 10).size() == 10", "it has a value"),
        ("text.find('b') == ''", "it has a value"),
    ],
)
def test_very_many_matches_of_a_regular_expression_end(expression, found):
    """Each match is effort; 2,900,000 of them took 24 s, because the characters before each were counted."""
    assert message(expression, text="a" * 150_000) == found


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [("é€😀", "", ["", "", "", ""]), ("aéa", "é|x*", ["", "é", ""]), ("éé", "é", ["é", "é"])],
)
def test_matches_begin_and_end_at_characters(text, pattern, found):
    """The text is searched as bytes, and no match is within a character."""
    assert outcome(f"text.findAll('{pattern}')", text=text) == found


@pytest.mark.parametrize("share", [0, 1, 50, 1_000, 100_000, 2 * LARGEST_COST])
@pytest.mark.parametrize(
    "expression",
    [
        "true",
        "text.size() > 3",
        "object.all(x, object.exists(y, x == y))",
        "object[9] == 1",
        "object.all(x, object == x)",
    ],
)
def test_an_evaluation_within_a_share_is_the_same_or_unfinished(expression, share):
    """And whole it is what it would have been at once."""
    program = ENVIRONMENT.compile(expression)
    values = {"text": "long", "other": "", "object": [*map(str, range(60))]}
    named = [values[name] for name in program.variables]
    whole, left = program.evaluate(values), Share(share)
    found = program.run_within(left, list(named))
    if found.outcome is UNFINISHED:
        assert share < LARGEST_COST
        assert program.run(list(named)) == whole
    else:
        assert found == whole
        assert left.left <= share - whole.cost
    assert program.run_within(Share(2 * LARGEST_COST), list(named)).outcome is not UNFINISHED
