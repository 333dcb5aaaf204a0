"""Durations: as Go writes and reads them, and what they are made of."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.libraries.conversions import string_from_duration
from gateway.cel.values.durations import NANOSECONDS, Duration, DurationError, duration, parse_duration
from gateway.cel.values.faults import Fault

lengths = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("1h", 3600 * NANOSECONDS),
        ("1h30m", 5400 * NANOSECONDS),
        ("-1.5s", -1_500_000_000),
        ("+5s", 5 * NANOSECONDS),
        (".5s", 500_000_000),
        ("5.s", 5 * NANOSECONDS),
        ("1ms", 1_000_000),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("1μs", 1_000),
        ("1ns", 1),
        ("1h1h", 7200 * NANOSECONDS),
        ("0.000000001s", 1),
        ("0.0000000001s", 0),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("00000000000000000000001s", NANOSECONDS),
    ],
)
def test_a_text_is_read_as_go_reads_it(text, nanoseconds):
    """Any number of parts, each with a unit; a sign before all of them."""
    assert parse_duration(text) == Duration(nanoseconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1h2", 'time: missing unit in duration "1h2"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("99999999999999999999h", 'time: invalid duration "99999999999999999999h"'),
        ("1h\n", 'time: unknown unit "h\\n" in duration "1h\\n"'),
    ],
)
def test_a_text_that_is_none_is_refused_in_the_words_of_go(text, message):
    """Time.ParseDuration's."""
    with pytest.raises(DurationError, match=f"^{re.escape(message)}$"):
        parse_duration(text)


@pytest.mark.property
@given(lengths)
def test_whole_nanoseconds_are_read_as_they_are_written(nanoseconds):
    """From the shortest to the longest."""
    assert parse_duration(f"{nanoseconds}ns") == Duration(nanoseconds)


@pytest.mark.property
@given(st.integers(-(10**15), 10**15))
def test_a_duration_survives_being_written_as_a_string(microseconds):
    """To the nanosecond: ``string(duration)`` gives seconds as a double, as in Go."""
    written = string_from_duration(Duration(microseconds * 1000))
    assert abs(parse_duration(written).nanoseconds - microseconds * 1000) <= 1


@pytest.mark.property
@given(st.text(alphabet="0123456789.hmsun-+µ ", max_size=24))
def test_every_text_is_a_duration_or_refused(text):
    """No other exception is raised, and what is read is an int64."""
    with suppress(DurationError):
        found = parse_duration(text)
        assert duration(found.nanoseconds) == found


@pytest.mark.parametrize("nanoseconds", [2**63, -(2**63) - 1])
def test_a_duration_that_no_int64_holds_is_an_overflow(nanoseconds):
    """Some 292 years."""
    with pytest.raises(Fault, match="integer overflow"):
        duration(nanoseconds)


@pytest.mark.parametrize(("nanoseconds", "hours"), [(3600, 1), (3599, 0), (-3599, 0), (-3600, -1), (-7201, -2)])
def test_whole_units_are_counted_towards_zero(nanoseconds, hours):
    """Minus an hour and a half is minus one hour."""
    assert Duration(nanoseconds * NANOSECONDS).count(3600 * NANOSECONDS) == hours


@pytest.mark.property
@given(lengths, lengths)
def test_durations_have_the_order_of_their_lengths(one, other):
    """And are equal if these are."""
    assert (Duration(one) < Duration(other)) == (one < other)
    assert (Duration(one) == Duration(other)) == (one == other)
