"""The front door: declared variables, a version, a wanted type; a program, or what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.environment import CompileError, Environment
from gateway.cel.versions import NEWEST, OLDEST, Version

ENVIRONMENT = Environment(
    {"name": "string", "pod": "a.Pod", "any": "dyn"},
    messages={"a.Pod": {"name": "string", "labels": "map(string, string)"}},
)


PIECES = [*"()[]{}.,:?!-+*/<>=&|'`1ax ", '"', "==", "&&", "||", " in ", "has(", ".map(x,", "0x", "1u", "b'", "\n"]


def wrong(expression, **arguments):
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.compile(expression, **arguments)
    return str(caught.value)


@pytest.mark.parametrize("result", ["bool", "dyn"])
def test_a_program_has_the_type_that_was_wanted(result):
    """Any type goes with dyn."""
    assert ENVIRONMENT.compile("name == 'a'", result=result).evaluate({"name": "a"}).outcome is True


@pytest.mark.parametrize(
    ("expression", "result", "message"),
    [
        ("name", "bool", "must evaluate to bool but got string"),
        ("any", "bool", "must evaluate to bool but got dyn"),
        ("[1]", "list(string)", "must evaluate to list(string) but got list(int)"),
        ("timestamp(0)", "duration", "must evaluate to google.protobuf.Duration but got google.protobuf.Timestamp"),
    ],
)
def test_another_type_is_an_error(expression, result, message):
    """Unknown types, too."""
    assert wrong(expression, result=result) == message


def test_a_program_says_what_it_is():
    """Its text, its type and its variables."""
    program = ENVIRONMENT.compile("pod.labels.map(k, k + name)")
    assert (program.expression, str(program.result), program.variables) == (
        "pod.labels.map(k, k + name)",
        "list(string)",
        ("name", "pod"),
    )


def test_members_of_a_message_have_types():
    """And those that it has not are errors."""
    assert str(ENVIRONMENT.compile("pod.name.size()").result) == "int"
    assert "undefined field 'nope'" in wrong("pod.nope")


@pytest.mark.parametrize("kind", ["list(", "", "map(int)", "int)"])
def test_a_type_that_is_not_written_correctly_is_refused(kind):
    """At once, and not with the first expression."""
    with pytest.raises(ValueError, match="is no type"):
        Environment({"x": kind})


@pytest.mark.parametrize("version", [Version(1, 27), Version(1, 37), Version(2, 0)])
def test_a_version_that_is_not_known_is_refused(version):
    """The message says which are."""
    with pytest.raises(ValueError, match=f"Kubernetes {version} is not known: versions are from {OLDEST} to {NEWEST}"):
        Environment({}, version=version)


def test_two_environments_know_nothing_of_each_other():
    """Each has its own variables."""
    assert Environment({"x": "int"}).compile("x + 1").evaluate({"x": 1}).outcome == 2
    with pytest.raises(CompileError, match="undeclared reference to 'x'"):
        Environment({"y": "int"}).compile("x + 1")


def test_an_environment_without_variables_has_constants():
    """And functions."""
    assert Environment({}).compile("'a' + 'b'").evaluate({}).outcome == "ab"


def test_a_reserved_name_cannot_be_a_variable_in_a_text():
    """It can be declared, and never be named."""
    with pytest.raises(CompileError, match="reserved identifier: for"):
        Environment({"for": "int"}).compile("for")


@pytest.mark.parametrize(
    ("opening", "closing"), [("(", ")"), ("[", "]"), ("{1: ", "}"), ("dyn(", ")"), ("true ? 1 : (", ")"), ("-(", ")")]
)
def test_a_hundred_levels_of_brackets_compile(opening, closing):
    """Whatever nests. Kubernetes has 250; here Python's stack ends before."""
    assert ENVIRONMENT.compile(opening * 100 + "1" + closing * 100).variables == ()


@pytest.mark.parametrize("opening", ["(", "[", "{1: ", "f(", "!(", "-(", "a[", "a ? b : (", "a.f(", "[1].map(x, "])
def test_nesting_without_end_is_an_error(opening):
    """Whatever nests."""
    assert "recursion" in wrong(opening * 2000 + "1")


@pytest.mark.property
@given(st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_every_text_gives_a_program_or_a_bounded_error(text):
    """And never another exception: at most a hundred problems, each with its line."""
    error = ""
    try:
        ENVIRONMENT.compile(text)
    except CompileError as wrong_:
        error = str(wrong_)
    assert len(error) < 100 * (5 * len(text) + 2000)
