"""What calendars and clocks say."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values.durations import Duration
from gateway.cel.values.timestamps import Timestamp
from tests.cel.evaluation import error, value

MOMENT = Timestamp(1_720_000_000, 123_456_789)
"""2024-07-03T09:46:40.123456789Z, a Wednesday."""


@pytest.mark.parametrize(
    ("getter", "expected", "in_tokyo"),
    [
        ("getFullYear", 2024, 2024),
        ("getMonth", 6, 6),
        ("getDate", 3, 3),
        ("getDayOfMonth", 2, 2),
        ("getDayOfYear", 184, 184),
        ("getDayOfWeek", 3, 3),
        ("getHours", 9, 18),
        ("getMinutes", 46, 46),
        ("getSeconds", 40, 40),
        ("getMilliseconds", 123, 123),
    ],
)
def test_a_getter_reads_in_utc_or_in_a_zone(getter, expected, in_tokyo):
    """Months and days count from 0, but for ``getDate``."""
    assert value(f"timestamp(a).{getter}()", a=MOMENT) == expected
    assert value(f"timestamp(a).{getter}('Asia/Tokyo')", a=MOMENT) == in_tokyo
    assert value(f"timestamp(a).{getter}('+09:00')", a=MOMENT) == in_tokyo


@pytest.mark.parametrize(
    ("getter", "expected"), [("getHours", 1), ("getMinutes", 90), ("getSeconds", 5400), ("getMilliseconds", 5_400_000)]
)
def test_a_duration_has_so_many_of_each_in_all(getter, expected):
    """And not what is left after the larger ones."""
    assert value(f"duration('1h30m').{getter}()") == expected


@pytest.mark.parametrize("getter", ["getHours", "getMilliseconds", "getFullYear"])
def test_a_zone_that_there_is_not_is_an_error(getter):
    """Also where it would change nothing."""
    assert error(f"timestamp(0).{getter}('Nowhere')") == "unknown time zone Nowhere"


@pytest.mark.property
@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_the_calendar_is_that_of_python(second):
    """For every second there is."""
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    moment = Timestamp(second, 0)
    assert value("timestamp(a).getFullYear()", a=moment) == expected.year
    assert value("timestamp(a).getMonth() + 1", a=moment) == expected.month
    assert value("timestamp(a).getDate()", a=moment) == expected.day
    assert value("timestamp(a).getHours()", a=moment) == expected.hour


@pytest.mark.property
@given(st.integers(-62_135_596_800, 253_402_300_799), st.integers(-(10**15), 10**15))
def test_adding_and_taking_away_a_duration_changes_nothing(second, nanoseconds):
    """Where the calendar does not end in between."""
    moment, length = Timestamp(second, 0), Duration(nanoseconds)
    if -62_135_596_800 < second + nanoseconds // 10**9 < 253_402_300_799:
        assert value("timestamp(a) + duration(b) - duration(b) == a", a=moment, b=length) is True
        assert value("timestamp(a) + duration(b) - timestamp(a) == b", a=moment, b=length) is True
