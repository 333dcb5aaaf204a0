"""The metrics: one table, its words, and what is counted when."""

from dataclasses import fields

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.deciding import Allow, Deny, Failure
from gateway.policies import FailurePolicy, Phase
from gateway.reasons import Reason
from gateway.serving.limits import Limits
from gateway.serving.refusals import Refusal
from gateway.telemetry import Metrics
from gateway.telemetry.metrics import LIMITS, PREFIX, REFUSALS
from tests.world import decide, policy, request

FAILURE = Failure(reason=Reason.WORKER_FAILURE, message="x")


@pytest.fixture
def metrics():
    return Metrics()


def value(metrics, name, **labels):
    return metrics.registry.get_sample_value(PREFIX + name, labels)


def decided(metrics, answer, *, phase=Phase.MUTATING, failure_policy=FailurePolicy.FAIL, on=None):
    """Count the decision of one policy that gives this answer."""
    one = policy("one", phase=phase, failure_policy=failure_policy)
    metrics.know([one])
    decision, _ = decide([one], {"one": answer}, on=on)
    metrics.decided(decision)
    return {"phase": phase.value, "policy": one.qualified_name}


def test_the_words_of_refusals_are_those_of_the_front():
    """Each refusal of the front has its own series, and not_a_review is the judge's."""
    assert set(REFUSALS) == {*Refusal, "not_a_review"}
    assert list(REFUSALS) == sorted(REFUSALS)


def test_the_words_of_limits_are_those_of_the_limits():
    """Each limit that is counted is one of Limits, or the log's."""
    assert set(LIMITS) <= {*(each.name for each in fields(Limits)), "log_lines"}


def test_counters_start_at_zero(metrics):
    """Whatever can be counted is there before it happens: absence means something."""
    metrics.know([policy("one", phase=Phase.VALIDATING)])
    families = text_string_to_metric_families(metrics.exposition()[1].decode())
    samples = [sample for family in families for sample in family.samples]
    assert {sample.value for sample in samples} == {0.0}
    assert {sample.labels["why"] for sample in samples if "why" in sample.labels} == set(REFUSALS)
    assert {sample.labels["limit"] for sample in samples if "limit" in sample.labels} == set(LIMITS)
    assert {sample.labels["policy"] for sample in samples if "policy" in sample.labels} == {"test/one.test.example.com"}


def test_all_names_are_ours(metrics):
    """Each series has our prefix, and none has a twin that says when it began."""
    families = list(text_string_to_metric_families(metrics.exposition()[1].decode()))
    assert [family.name for family in families if not family.name.startswith(PREFIX)] == []
    assert [family.name for family in families if family.name.endswith("_created")] == []


@pytest.mark.parametrize(
    ("answer", "verdict", "outcome"),
    [(Allow(), "allow", "allowed"), (Deny(message="no"), "deny", "denied"), (FAILURE, "failure", "failed")],
)
@pytest.mark.parametrize("phase", Phase)
def test_a_decision_is_counted(metrics, phase, answer, verdict, outcome):
    """A decision counts once by its outcome, once in the histogram, and once for each policy by its verdict."""
    labels = decided(metrics, answer, phase=phase)
    assert value(metrics, "reviews_total", phase=phase, outcome=outcome) == 1
    assert value(metrics, "review_seconds_count", phase=phase) == 1
    assert value(metrics, "policy_verdicts_total", **labels, verdict=verdict) == 1
    others = {"allow", "deny", "failure"} - {verdict}
    assert [value(metrics, "policy_verdicts_total", **labels, verdict=other) for other in others] == [0, 0]


def test_a_failure_is_counted_by_its_reason(metrics):
    """A failure counts under its reason code; under Fail it has not failed open."""
    labels = decided(metrics, FAILURE)
    assert value(metrics, "policy_failures_total", **labels, reason="WORKER_FAILURE") == 1
    assert value(metrics, "failed_open_total", **labels) == 0


def test_failing_open_is_counted(metrics):
    """A failure under Ignore is an allowed review, a failure, and failed open."""
    labels = decided(metrics, FAILURE, failure_policy=FailurePolicy.IGNORE)
    assert value(metrics, "failed_open_total", **labels) == 1
    assert value(metrics, "policy_failures_total", **labels, reason="WORKER_FAILURE") == 1
    assert value(metrics, "reviews_total", phase="mutating", outcome="allowed") == 1


def test_who_does_not_match_is_not_counted(metrics):
    """A policy that a request does not concern has given no verdict."""
    labels = decided(
        metrics, Allow(), on=request(resource={"group": "apps", "version": "v1", "resource": "deployments"})
    )
    assert value(metrics, "policy_verdicts_total", **labels, verdict="allow") == 0
    assert value(metrics, "reviews_total", phase="mutating", outcome="allowed") == 1


def test_what_is_not_configured_any_more_is_forgotten(metrics):
    """The series of policies and entries that have gone go too; the others keep what they have counted."""
    one, two = policy("one"), policy("two")
    metrics.know([one, two], [(Phase.MUTATING, "chain.one"), (Phase.MUTATING, "chain.two")])
    decision, _ = decide([one, two], {"one": FAILURE, "two": Allow()})
    metrics.decided(decision)
    metrics.judged("chain.one", decision)
    metrics.judged("chain.two", decision)
    metrics.forget_others([one], [(Phase.MUTATING, "chain.one")])
    assert "two.test" not in metrics.exposition()[1].decode()
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert value(metrics, "policy_failures_total", **labels, reason="WORKER_FAILURE") == 1
    assert value(metrics, "entry_reviews_total", phase="mutating", entry="chain.one", outcome="failed") == 1
    metrics.decided(decision)
    metrics.forget_others([], [])
    assert "one.test" not in metrics.exposition()[1].decode()


def test_any_number_of_configurations_leaves_as_many_series_as_the_last(metrics):
    """What a thousand reloads bring and take away leaves nothing behind."""
    metrics.know([policy("stays")], [(Phase.MUTATING, "chain.stays")])
    before = len(metrics.exposition()[1].splitlines())
    for number in range(100):
        metrics.know([policy("stays"), policy(f"p{number}")], [(Phase.VALIDATING, f"group.p{number}")])
        metrics.forget_others([policy("stays")], [(Phase.MUTATING, "chain.stays")])
    assert len(metrics.exposition()[1].splitlines()) == before


def test_reloads_are_counted_by_their_result(metrics):
    """What was read last, and whether it is what is served."""
    metrics.loaded(1700000000.5, errors=1)
    assert value(metrics, "configuration_loaded_timestamp_seconds") == 1700000000.5
    assert (value(metrics, "configuration_errors"), value(metrics, "configuration_last_reload_successful")) == (1, 1)
    metrics.reloaded("invalid", errors=3, good=False)
    assert value(metrics, "configuration_reloads_total", result="invalid") == 1
    assert (value(metrics, "configuration_errors"), value(metrics, "configuration_last_reload_successful")) == (3, 0)


@pytest.mark.parametrize("why", [*Refusal, "not_a_review"])
def test_a_refusal_is_counted_by_its_word(metrics, why):
    """Each refusal counts under its own word."""
    metrics.refused(why)
    assert value(metrics, "http_refusals_total", why=why) == 1


def test_labels_are_bounded(metrics):
    """Words that nobody foresaw share one series, however many there are."""
    for number in range(100):
        metrics.refused(f"new-{number}")
        metrics.limit_hit(f"new-{number}")
    assert value(metrics, "http_refusals_total", why="other") == 100
    assert value(metrics, "limit_hits_total", limit="other") == 100
    text = metrics.exposition()[1].decode()
    assert "new-" not in text


def test_a_body_that_is_no_review_and_an_abandoned_review_are_counted(metrics):
    """What never came to a decision is counted too."""
    metrics.not_a_review()
    metrics.abandoned(Phase.VALIDATING)
    assert value(metrics, "http_refusals_total", why="not_a_review") == 1
    assert value(metrics, "abandoned_reviews_total", phase="validating") == 1
    assert value(metrics, "abandoned_reviews_total", phase="mutating") == 0
