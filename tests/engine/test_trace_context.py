"""W3C Trace Context: what is valid goes on, everything else begins a new trace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace.span import TraceState

from gateway.engine.trace_context import (
    MOST_MEMBERS,
    NO_TRACE,
    STATE_CHARACTERS,
    TraceContext,
    parent_of,
)
from gateway.serving.route_table import passed_on

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"

hexadecimal = st.text("0123456789abcdef", min_size=1, max_size=40)
near_misses = st.lists(hexadecimal, min_size=1, max_size=6).map("-".join)
keys = st.from_regex(r"\A[a-z][_0-9a-z*/-]{0,20}(@[a-z][_0-9a-z*/-]{0,5})?\Z")
values = st.from_regex(r"\A[ -+\--<>-~]{0,150}[!-+\--<>-~]\Z")
members = st.tuples(keys, values).map("=".join)


@pytest.mark.parametrize(
    ("traceparent", "goes_on"),
    [
        (TRACEPARENT, TRACEPARENT),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"01-{TRACE}-{SPAN}-ff-what-the-future-brings", TRACEPARENT),
        (f"cc-{TRACE}-{SPAN}-01", TRACEPARENT),
        (f"{TRACEPARENT}-more", None),
        (f"cc-{TRACE}-{SPAN}-01.more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (TRACEPARENT.upper(), None),
        (f" {TRACEPARENT}", None),
        (f"{TRACEPARENT}\n", None),
        (TRACEPARENT[:-1], None),
        ("", None),
        (f"cc-{TRACE}-{SPAN}-01-" + "x" * 7000 + "\x00", None),
    ],
)
def test_a_traceparent_goes_on_if_it_is_valid(traceparent, goes_on):
    """A valid traceparent goes on, one of a later version as version 00; any other counts as none."""
    parent = parent_of([traceparent], [])
    assert (None if parent is None else parent.traceparent) == goes_on


def test_a_repeated_traceparent_is_none():
    """Which of two is the caller's cannot be known, even if they are equal."""
    assert parent_of([TRACEPARENT, TRACEPARENT], ["a=1"]) is None
    assert parent_of([], ["a=1"]) is None


@pytest.mark.parametrize(
    ("states", "goes_on"),
    [
        (["a=1,b=2"], "a=1,b=2"),
        (["a=1", "b=2"], "a=1,b=2"),
        (["a=1 ,\t b=2,, "], "a=1,b=2"),
        (["1tenant@vendor=x"], "1tenant@vendor=x"),
        (["a=1,a=2"], ""),
        (["A=1"], ""),
        (["a=1,b"], ""),
        (["a=1,b=ü"], ""),
        (["a=x=y"], ""),
        ([",".join(f"k{n}=1" for n in range(MOST_MEMBERS + 1))], ""),
        (["a=" + "x" * 257], ""),
        (["a=" + "x" * 200 + ",b=" + "y" * 200 + ",c=" + "z" * 200 + ",d=1"], "d=1"),
        ([",".join(f"k{n:02}={'v' * 60}" for n in range(20))], ",".join(f"k{n:02}={'v' * 60}" for n in range(7))),
        ([], ""),
    ],
)
def test_a_tracestate_goes_on_if_it_is_valid(states, goes_on):
    """An invalid tracestate is discarded, and its traceparent still counts; of a long one goes on what fits."""
    parent = parent_of([TRACEPARENT], states)
    assert parent.traceparent == TRACEPARENT
    assert parent.tracestate == goes_on


@pytest.mark.property
@given(st.lists(st.one_of(st.text(max_size=80), near_misses), max_size=2), st.lists(st.text(max_size=600), max_size=3))
def test_any_headers_are_a_parent_or_none(traceparents, tracestates):
    """Whatever is sent, what goes on is valid, and reading it again gives the same."""
    parent = parent_of(traceparents, tracestates)
    if parent is not None:
        assert len(parent.traceparent) == len(TRACEPARENT)
        assert len(parent.tracestate) <= STATE_CHARACTERS
        again = parent_of([parent.traceparent], [parent.tracestate] if parent.tracestate else [])
        assert again == parent


@pytest.mark.property
@given(st.lists(members, max_size=40))
def test_every_tracestate_that_goes_on_is_one_for_opentelemetry(made):
    """OpenTelemetry's own reader finds the same members in what goes on."""
    state = parent_of([TRACEPARENT], made).tracestate
    assert TraceState.from_header([state]).to_header() == state


@given(st.integers(1, 2**64 - 1), st.integers(1, 1000))
def test_every_call_has_a_span_of_its_own(span_id, calls):
    """The ids of the spans of a review's calls differ from one another and from the review's, and none is zero."""
    trace = TraceContext(traceparent=f"00-{TRACE}-{span_id:016x}-01", has_span=True, sampled=True)
    ids = {trace.span_of(number) for number in range(1, calls + 1)} | {span_id}
    assert 0 not in ids
    assert len(ids) == calls + 1
    assert trace.of_call(1) == f"00-{TRACE}-{trace.span_of(1):016x}-01"


def test_what_is_not_traced_goes_on_as_it_came():
    """Without tracing both headers go on."""
    context = passed_on(parent_of([TRACEPARENT], ["a=1"]))
    assert (context.of_call(7), context.tracestate) == (TRACEPARENT, "a=1")
    assert passed_on(None) is NO_TRACE
