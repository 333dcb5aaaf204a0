"""Former entries are kept while they are called, and not for ever, nor however many there are."""

import pytest

from gateway.policies.model import Phase
from gateway.registration.former_entries import FormerEntry
from gateway.serving import outdated_calls
from gateway.serving.outdated_calls import KEPT_SECONDS, OutdatedCalls
from gateway.serving.plans import Target
from gateway.telemetry.metrics import Metrics
from tests.samples import sample_value

PHASE = Phase.MUTATING


def former(name, policies=1):
    return FormerEntry(
        phase=PHASE, name=name, revision="01234567", policies=frozenset(f"t/{n}" for n in range(policies))
    )


def target(entry):
    return Target(*entry.key)


class Clock:
    """Its time is the test's to set."""

    time = 0.0

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def calls(metrics, clock):
    return OutdatedCalls(metrics, clock)


def test_an_entry_is_kept_for_a_day_after_its_last_call(calls, clock):
    """One that is not called ends a day after it became a former one, at the next reload."""
    called = former("called")
    entries = (called, former("other"))
    assert calls.kept(entries) == entries
    clock.time = KEPT_SECONDS - 1
    calls.called(target(called))
    assert calls.kept(entries) == entries
    clock.time = KEPT_SECONDS
    assert calls.kept(entries) == (called,)
    clock.time = 2 * KEPT_SECONDS
    assert calls.kept((called,)) == ()


def test_too_many_are_those_called_longest_ago(calls, clock, metrics, monkeypatch):
    """The limit is on their policies; the metric says that it was reached."""
    monkeypatch.setattr(outdated_calls, "KEPT_POLICIES", 10)
    second = former("second", 5)
    entries = (former("first", 5), second)
    clock.time = 1
    calls.kept(entries)
    clock.time = 2
    calls.called(target(second))
    assert calls.kept(entries) == (second,)
    assert sample_value(metrics, "admission_gateway_limit_hits_total", {"limit": "former_entry_policies"}) == 2


def test_calls_are_shown_for_ten_minutes(calls, clock, metrics):
    """And counted by their entries."""
    assert calls.note is None
    for number in range(12):
        calls.called(target(former(f"e{number}")))
    assert "/mutate/e0/01234567" in calls.note
    assert "and 2 more" in calls.note
    labels = {"phase": "mutating", "entry": "e0"}
    assert sample_value(metrics, "admission_gateway_outdated_entry_reviews_total", labels) == 1
    clock.time = 600
    assert calls.note is None
