"""Timestamps: RFC 3339 as Go reads it, calendars and zones."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cel.values.faults import Fault
from gateway.cel.values.timestamps import Timestamp, civil, parse_timestamp, timestamp, timestamp_text, zone_offset

FIRST, LAST = -62_135_596_800, 253_402_300_799
seconds = st.integers(FIRST, LAST)
offsets = st.integers(-24 * 60, 24 * 60).map(lambda minutes: minutes * 60)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1970-01-01T00:00:00Z", Timestamp(0, 0)),
        ("1970-01-01T01:00:00+01:00", Timestamp(0, 0, 3600)),
        ("1969-12-31T19:00:00-05:00", Timestamp(0, 0, -18000)),
        ("1970-01-01T00:00:00.5Z", Timestamp(0, 500_000_000)),
        ("1970-01-01T00:00:00,5Z", Timestamp(0, 500_000_000)),
        ("1970-01-01T00:00:00.1234567899Z", Timestamp(0, 123_456_789)),
        ("1970-01-01T0:00:00Z", Timestamp(0, 0)),
        ("2024-02-29T00:00:00Z", Timestamp(1_709_164_800, 0)),
        ("0001-01-01T00:00:00Z", Timestamp(FIRST, 0)),
        ("9999-12-31T23:59:59Z", Timestamp(LAST, 0)),
    ],
)
def test_a_text_is_read_as_go_reads_it(text, found):
    """To the nanosecond; further digits are dropped."""
    assert parse_timestamp(text) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01 00:00:00Z", "1970-13-01T00:00:00Z"),
        *("1970-00-01T00:00:00Z", "1970-01-32T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z"),
        *("1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01T00:00:60Z", "1970-01-01T00:00:00+25:00"),
        *("1970-01-01T00:00:00+01:60", "1970-01-01T00:00:00.Z", "1970-01-01t00:00:00z", "1970-01-01T00:00:00Z\n"),
        "١٩٧٠-01-01T00:00:00Z",
    ],
)
def test_a_text_that_is_none_is_none(text):
    """A day that the calendar has not, a time that the clock has not, a form that RFC 3339 has not."""
    assert parse_timestamp(text) is None


@pytest.mark.parametrize("text", ["0000-12-31T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_year_beyond_the_calendar_is_an_overflow(text):
    """Of the moment, whatever the text's own year is."""
    with pytest.raises(Fault, match="timestamp overflow"):
        parse_timestamp(text)


@pytest.mark.property
@given(seconds, st.integers(0, 999_999_999), offsets)
def test_a_timestamp_survives_being_written(second, nanos, offset):
    """In any zone of whole minutes in which its year has four digits."""
    moment = Timestamp(second, nanos, offset)
    if FIRST <= second + offset <= LAST:
        assert parse_timestamp(timestamp_text(moment)) == moment


@pytest.mark.property
@given(st.text(alphabet="0123456789-:TZ.+", max_size=30))
def test_every_text_is_a_timestamp_or_none(text):
    """The only error is that of the calendar's ends."""
    with suppress(Fault):
        found = parse_timestamp(text)
        assert found is None or FIRST <= found.seconds <= LAST


@pytest.mark.property
@given(seconds)
def test_calendar_and_clock_are_those_of_python(second):
    """From the year 1 to the year 9999."""
    shown, expected = civil(Timestamp(second, 0), 0), EPOCH + timedelta(seconds=second)
    assert (shown.year, shown.month, shown.day) == (expected.year, expected.month, expected.day)
    assert (shown.hour, shown.minute, shown.second) == (expected.hour, expected.minute, expected.second)
    assert shown.weekday == expected.isoweekday() % 7
    assert shown.yearday == expected.timetuple().tm_yday - 1


@pytest.mark.parametrize(("instant", "offset"), [((FIRST * 10**9) - 1, 0), ((LAST + 1) * 10**9, 0)])
def test_a_moment_beyond_the_calendar_is_an_overflow(instant, offset):
    """One nanosecond is enough."""
    with pytest.raises(Fault, match="timestamp overflow"):
        timestamp(instant, offset)


# ---------------------------------------------------------------------------------------------------- zones
@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        ("", 0),
        ("UTC", 0),
        ("+02:00", 7200),
        ("02:00", 7200),
        ("-02:30", -9000),
        ("Europe/Berlin", 7200),
        ("America/New_York", -14400),
        ("Asia/Kathmandu", 20700),
    ],
)
def test_how_far_a_zone_is_east(zone, offset):
    """By name or by hours and minutes; here in summer."""
    assert zone_offset(parse_timestamp("2024-07-01T00:00:00Z"), zone) == offset


def test_a_zone_has_summer_and_winter():
    """What counts is the moment."""
    assert zone_offset(parse_timestamp("2024-01-01T00:00:00Z"), "Europe/Berlin") == 3600


@pytest.mark.parametrize("second", [FIRST, LAST])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Los_Angeles"])
def test_zones_have_an_offset_at_the_ends_of_the_calendar(second, zone):
    """Where Python's own local time would not exist."""
    assert abs(zone_offset(Timestamp(second, 0), zone)) <= 86_400


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        ("Nowhere/At_All", "unknown time zone Nowhere/At_All"),
        ("Local", "unknown time zone Local"),
        ("../etc/passwd", "time: invalid location name"),
        ("/etc/localtime", "time: invalid location name"),
        ("\\x", "time: invalid location name"),
        ("a:00", 'strconv.Atoi: parsing "a": invalid syntax'),
        ("00:", 'strconv.Atoi: parsing "": invalid syntax'),
        ("9999999999999999999:00", 'strconv.Atoi: parsing "9999999999999999999": value out of range'),
        ("\0", "unknown time zone \0"),
    ],
)
def test_what_is_no_zone_is_an_error(zone, message):
    """No file outside of the time zones is looked at."""
    with pytest.raises(Fault) as caught:
        zone_offset(Timestamp(0, 0), zone)
    assert caught.value.message == message
