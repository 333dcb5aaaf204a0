"""Text to tree: precedence, literals, and the texts of errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.parser.parser import parse
from tests.cel.parser.unparsing import shape, tree, unparse


def problems(text):
    """Offset and message of each problem."""
    return [(problem.offset, problem.message) for problem in parse(text, {}).problems]


# ----------------------------------------------------------------------------------------------- precedence
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1 + 2 * 3", "1 + (2 * 3)"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("1 * 2 / 3 % 4", "((1 * 2) / 3) % 4"),
        ("a < b == c", "(a < b) == c"),
        ("a in b in c", "(a in b) in c"),
        ("a + b in c", "(a + b) in c"),
        ("a == b && c", "(a == b) && c"),
        ("a && b || c && d", "(a && b) || (c && d)"),
        ("a || b ? c : d", "(a || b) ? c : d"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("!a.b", "!(a.b)"),
        ("!a && b", "(!a) && b"),
        ("-a.b + c", "(-(a.b)) + c"),
        ("-a[0]", "-(a[0])"),
        ("!!a", "a"),
        ("!!!a", "!a"),
        ("--a", "a"),
        ("- 1", "-1"),
        ("[1, 2,]", "[1, 2]"),
        ("{'a': 1,}", "{'a': 1}"),
        ("[,]", "[]"),
        ("((a))", "a"),
        ("a // b\n + c", "a + c"),
        ("a . b", "a.b"),
    ],
)
def test_what_binds_how(text, same):
    """Both texts have the same tree."""
    assert shape(tree(text)) == shape(tree(same))


@pytest.mark.parametrize(
    ("one", "other"), [("1 - (2 - 3)", "1 - 2 - 3"), ("-(1)", "-1"), ("(a ? b : c) ? d : e", "a ? b : c ? d : e")]
)
def test_brackets_matter(one, other):
    """Where they say something else than what would hold without them."""
    assert shape(tree(one)) != shape(tree(other))


def test_chains_of_and_and_or_are_balanced():
    """The operator in the middle is on top, as in cel-go."""
    assert shape(tree("a && b && c && d")) == shape(tree("(a && b) && (c && d)"))


# ------------------------------------------------------------------------------------------------- literals
@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("0", ("int", "0")),
        ("-9223372036854775808", ("int", "-9223372036854775808")),
        ("0x7fffffffffffffff", ("int", "9223372036854775807")),
        ("-0x1", ("int", "-1")),
        ("007", ("int", "7")),
        ("18446744073709551615u", ("Uint", "18446744073709551615u")),
        ("0xFFu", ("Uint", "255u")),
        ("1.5", ("float", "1.5")),
        ("-.5", ("float", "-0.5")),
        ("1e3", ("float", "1000.0")),
        ("true", ("bool", "True")),
        ("null", ("NoneType", "None")),
        ("'a'", ("str", "'a'")),
        ("b'a'", ("bytes", "b'a'")),
    ],
)
def test_a_literal_has_a_kind_and_a_value(text, literal):
    """A minus directly before a number is part of it."""
    assert shape(tree(text)) == ("literal", *literal)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("9223372036854775808", (0, "invalid int literal")),
        ("-9223372036854775809", (0, "invalid int literal")),
        ("0x10000000000000000", (0, "invalid int literal")),
        ("18446744073709551616u", (0, "invalid uint literal")),
        ("1e400", (0, "invalid double literal")),
        ("1" * 2000, (0, "invalid int literal")),
        ("1" * 2000 + "u", (0, "invalid uint literal")),
        (r"'\ud800'", (0, "invalid unicode code point")),
        (r"b'\u0041'", (0, "unable to unescape string")),
        ("a.`b`", (2, "unsupported syntax: '`'")),
        ("A{`b`: 1}", (2, "unsupported syntax: '`'")),
        ("for", (0, "reserved identifier: for")),
        ("a + package", (4, "reserved identifier: package")),
    ],
)
def test_a_value_that_there_is_not_is_a_problem_at_its_place(text, problem):
    """Parsing goes on, so that all of them are found."""
    assert problems(text) == [problem]


def test_all_problems_that_do_not_stop_the_parser_are_found():
    """In the order of the text."""
    assert [offset for offset, _ in problems("for + 9223372036854775808 + a.`b`")] == [0, 6, 30]


# ------------------------------------------------------------------------------------------- names and calls
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", ("name", "a")),
        (".a", ("name", ".a")),
        ("a.b", ("select", ("name", "a"), "b")),
        ("a.for", ("select", ("name", "a"), "for")),
        ("f()", ("call", "f", None)),
        (".f(a)", ("call", ".f", None, ("name", "a"))),
        ("a.f(b)", ("call", "f", ("name", "a"), ("name", "b"))),
        ("a[0]", ("call", "_[_]", None, ("name", "a"), ("literal", "int", "0"))),
        ("a[?0]", ("call", "_[?_]", None, ("name", "a"), ("literal", "int", "0"))),
        ("a.?b", ("call", "_?._", None, ("name", "a"), ("literal", "str", "'b'"))),
        ("A.B{c: 1}", ("message", "A.B", ("c", ("literal", "int", "1"), False))),
        (".A{}", ("message", ".A")),
        ("A{?c: d}", ("message", "A", ("c", ("name", "d"), True))),
        ("[?a, b]", ("list", (0,), ("name", "a"), ("name", "b"))),
        ("{?a: b}", ("map", (("name", "a"), ("name", "b"), True))),
    ],
)
def test_names_calls_and_aggregates(text, found):
    """A keyword that is only reserved may be a member."""
    assert shape(tree(text)) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "(1",
        "[1",
        "{'a'}",
        "{'a' 1}",
        "a.",
        "a.1",
        "a b",
        "1 2",
        "f(,)",
        "f(a,)",
        "a ? b",
        "a ? b :",
        ")",
        "a..b",
        "&& a",
        "a.in",
        "in",
        "a[",
        "a[]",
        "A{a}",
        "A{'a': 1}",
        "a.?",
        "a.?b(c)(",
        "? a",
        "#",
        "'a",
    ],
)
def test_what_is_no_expression_has_one_syntax_error(text):
    """Where it stops to be one."""
    (problem,) = parse(text, {}).problems
    assert problem.message.startswith("Syntax error: ")
    assert 0 <= problem.offset <= len(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("+".join("1" * 300), "max recursion depth exceeded"),
        ("a" + ".b" * 300, "max recursion depth exceeded"),
        ("'" + "a" * 100_000 + "'", "expression code point size exceeds limit: size: 100002, limit 100000"),
    ],
)
def test_limits_have_problems_without_a_place(text, message):
    """Nesting and length."""
    assert problems(text) == [(None, message)]


# ---------------------------------------------------------------------------------------------------- laws
names = st.sampled_from(["a", "b", "x1", "_y"])
literals = (
    st.integers(0, 2**63 - 1).map(str)
    | st.integers(0, 2**64 - 1).map("{}u".format)
    | st.floats(0, 1e15, allow_subnormal=False).map(lambda value: f"{value:.3f}")
    | st.sampled_from(["true", "false", "null", "'a\\n'", "b'\\xff'", "''"])
)
texts = st.recursive(
    names | literals,
    lambda inner: st.one_of(
        *(
            st.builds(form.format, *[inner] * form.count("{}"))
            for form in (
                *(
                    "({} + {})",
                    "{} * {}",
                    "{} - {}",
                    "{} / {} % {}",
                    "{} < {}",
                    "{} == {}",
                    "{} in {}",
                    "{} && {} && {}",
                ),
                *("{} || {}", "({} ? {} : {})", "!({})", "-({})", "f({})", "({}).g({}, {})", "({})[{}]", "({})[?{}]"),
                *("({}).m", "({}).?m", "[{}, ?{}]", "[]", "{{{}: {}, ?{}: {}}}", "A.B{{c: {}, ?d: {}}}"),
            )
        )
    ),
    max_leaves=12,
)


@pytest.mark.property
@given(texts)
def test_a_tree_is_the_tree_of_its_text(text):
    """Parsing what a tree is written as gives that tree again."""
    found = tree(text)
    assert shape(tree(unparse(found))) == shape(found)


@pytest.mark.property
@given(texts, st.sampled_from([" ", "\n", "\t", " // a comment\n"]))
def test_blanks_change_nothing(text, blank):
    """Around the text, and around each operator."""
    spaced = blank + text.replace(" ", blank) + blank
    assert shape(tree(spaced)) == shape(tree(text))


@pytest.mark.property
@given(st.text(max_size=50) | st.text(alphabet="ab1 .,:?()[]{}+-*/%<>=!&|'\"\\u", max_size=50))
def test_every_text_is_a_tree_or_has_problems(text):
    """Never both, never neither, and never an exception."""
    parsed = parse(text, {})
    assert (parsed.tree is None) == bool(parsed.problems)
