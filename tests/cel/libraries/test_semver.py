"""Semantic versions."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cel.evaluation import error, value

numbers = st.integers(0, 20)
words = st.sampled_from(["", "-rc", "-rc.1", "-rc.2", "-alpha.beta", "-1", "-0.3.7"])
versions = st.builds("{}.{}.{}{}".format, numbers, numbers, numbers, words)


@pytest.mark.parametrize(
    "chain",
    [
        [
            *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"),
            *("1.0.0-beta.11", "1.0.0-rc.1", "1.0.0"),
        ],
        ["0.9.9", "1.0.0", "1.0.1", "1.1.0", "2.0.0", "10.0.0"],
    ],
)
def test_versions_have_the_order_of_the_specification(chain):
    """Semver.org, 11: each is less than the next one."""
    for one, other in pairwise(chain):
        assert value("semver(a).isLessThan(semver(b))", a=one, b=other) is True
        assert value("semver(b).isGreaterThan(semver(a))", a=one, b=other) is True
        assert value("semver(a).compareTo(semver(b))", a=one, b=other) == -1


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("semver('1.2.3').major()", 1),
        ("semver('1.2.3').minor()", 2),
        ("semver('1.2.3').patch()", 3),
        ("semver('18446744073709551615.0.0').major()", -1),
        ("semver('1.2.3+a') == semver('1.2.3+b')", True),
        ("semver('1.2.3-a') == semver('1.2.3')", False),
        ("semver('v1.02', true) == semver('1.2.0')", True),
        ("semver('1', true) == semver('1.0.0')", True),
        ("semver('v1.2.3-rc', true) == semver('1.2.3-rc')", True),
        ("isSemver('1.2.3')", True),
        ("isSemver('1.2')", False),
        ("isSemver('1.2', true)", True),
        ("isSemver('v1.2.3')", False),
        ("isSemver('v1.2.3', true)", True),
        ("isSemver('1.2-rc', true)", False),
    ],
)
def test_what_a_function_comes_to(expression, expected):
    """Build metadata does not count; normalization is on request."""
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("a.2.3", 'Invalid character(s) found in major number "a"'),
        ("01.2.3", 'Major number must not contain leading zeroes "01"'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3-é", 'Invalid character(s) found in prerelease "é"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+é", 'Invalid character(s) found in build meta data "é"'),
        ("1.2.99999999999999999999", 'strconv.ParseUint: parsing "99999999999999999999": value out of range'),
    ],
)
def test_what_is_no_version_is_an_error(text, message):
    """In the words of blang/semver."""
    assert error("semver(a)", a=text) == message


@pytest.mark.property
@given(versions, versions, versions)
def test_the_order_is_one(one, two, three):
    """Antisymmetric and transitive."""
    variables = {"a": one, "b": two, "c": three}
    assert value("semver(a).compareTo(semver(b)) == -semver(b).compareTo(semver(a))", **variables) is True
    chain = "!(semver(a).compareTo(semver(b)) <= 0 && semver(b).compareTo(semver(c)) <= 0)"
    assert value(f"{chain} || semver(a).compareTo(semver(c)) <= 0", **variables) is True


@pytest.mark.property
@given(st.text(alphabet="0123456789.-+abv ", max_size=14))
def test_every_text_is_a_version_or_none(text):
    """A version needs no normalization to be one with it."""
    assert value("!isSemver(a) || isSemver(a, true)", a=text) is True
