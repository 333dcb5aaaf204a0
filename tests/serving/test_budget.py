"""The budget never promises a moment that the API server may not wait for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.serving.budget import budget


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [
        ("1s", 0.45),
        ("2s", 0.95),
        ("10s", 8.95),
        ("30s", 28.95),
        ("31s", 28.95),
        ("99999s", 28.95),
        ("9" * 5000 + "s", 28.95),
        ("007s", 5.95),
        (None, 8.95),
        ("", 8.95),
        ("0s", 8.95),
        ("-3s", 8.95),
        ("+3s", 8.95),
        ("10", 8.95),
        ("2.5s", 8.95),
        ("1m", 8.95),
        ("10S", 8.95),
        ("10s\n", 8.95),
        (" 10s", 8.95),
        ("\u0663s", 8.95),
        ("1_0s", 8.95),
    ],
)
def test_each_form_of_the_parameter(timeout, seconds):
    """N - 1 seconds for N seconds, half a second for one, 30 at most, 9 for what is unreadable; less 50 ms."""
    assert budget(timeout) == pytest.approx(seconds)


@pytest.mark.property
@given(n=st.integers(2, 30), rounded_off=st.floats(0, 1, exclude_max=True))
def test_the_answer_leaves_before_the_api_server_gives_up(n, rounded_off):
    """Whatever was rounded up to N, from 2 on the budget ends 50 ms before it."""
    assert budget(f"{n}s") <= n - rounded_off - 0.05 + 1e-9


@pytest.mark.property
@given(text=st.one_of(st.none(), st.text(), st.from_regex(r"[0-9]+s?")))
def test_every_text_has_a_budget(text):
    """Nothing in the parameter raises, and nothing gets less than half a second or more than a webhook may have."""
    assert 0.45 <= budget(text) <= 28.95
