"""How problems are shown: place, line, and a mark below."""

from gateway.cel.parser.errors import Problem, describe


def problem(offset, message="m"):
    return Problem(offset=offset, message=message)


def test_a_problem_shows_its_line_and_marks_its_place():
    """Lines and columns count from 1."""
    assert describe("a + b", [problem(2)]) == "ERROR: <input>:1:3: m\n | a + b\n | ..^"


def test_only_the_line_of_the_problem_is_shown():
    """Of several."""
    assert describe("a\nb c\nd", [problem(4)]) == "ERROR: <input>:2:3: m\n | b c\n | ..^"


def test_a_problem_at_the_end_is_marked_behind_the_line():
    """There is no character to mark."""
    assert describe("a +", [problem(3)]).endswith(" | a +\n | ...^")


def test_a_problem_of_nowhere_shows_no_line():
    """As cel-go's NoLocation."""
    assert describe("a", [problem(None)]) == "ERROR: <input>:-1:0: m"


def test_problems_are_sorted_by_their_place():
    """Those of the same place stay in their order; those of nowhere come first."""
    shown = describe("ab\nc", [problem(3, "1"), problem(0, "2"), problem(0, "3"), problem(None, "4")])
    assert [line[-1] for line in shown.splitlines() if line.startswith("ERROR")] == ["4", "2", "3", "1"]


def test_a_tab_is_shown_as_a_blank():
    """So that the mark stands below its place."""
    assert describe("\ta", [problem(1)]).endswith(" |  a\n | .^")


def test_wide_characters_have_wide_dots_and_a_wide_mark():
    """What is not ASCII counts as wide."""
    assert describe("日本", [problem(1)]).endswith(" | 日本\n | ．＾")


def test_at_most_a_hundred_problems_are_shown():
    """And how many more there are."""
    shown = describe("a", [problem(0)] * 130)
    assert shown.count("ERROR") == 100
    assert shown.endswith("\n30 more errors were truncated")


def test_a_long_line_is_not_shown():
    """16,384 bytes are."""
    assert "\n" in describe("a" * 16_384, [problem(0)])
    assert describe("a" * 16_385, [problem(0)]) == "ERROR: <input>:1:1: m"
    assert describe("é" * 8_193, [problem(0)]) == "ERROR: <input>:1:1: m"
