"""The metrics: one table, its words, and what is counted when."""

from dataclasses import fields, replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.caching.events import LookupResult
from gateway.deciding.origin import Source
from gateway.deciding.plan import Unavailable, UnavailableReason
from gateway.deciding.verdicts import Allow, Deny, Failure
from gateway.policies.model import Cache, FailurePolicy, Phase, Shadow
from gateway.reasons import Reason
from gateway.redis.faults import RedisFault
from gateway.scopes.inputs import Inputs
from gateway.scopes.places import Places
from gateway.serving.counting import CacheCounting, WorkerCounting
from gateway.serving.limits import Limits
from gateway.serving.patrol import STABLE, UNSTABLE
from gateway.serving.refusals import Refusal
from gateway.serving.replay import DROPPED, FAILED
from gateway.serving.shadow import DIFFERENT, SAME
from gateway.telemetry.metrics import (
    COMPARED,
    ENTRIES,
    LIMITS,
    LOOKUPS,
    PATROLLED,
    PATROLS,
    PREFIX,
    QUEUE_EVENTS,
    QUEUE_LIMITS,
    REDIS_ERRORS,
    REFUSALS,
    WORKER_EVENTS,
    Metrics,
)
from gateway.transports.events import WorkerEvent
from gateway.transports.limits import TransportLimits
from tests.world import decide, label, patch, policy, request

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
    """Each limit that is counted is one of Limits or TransportLimits, or the log's."""
    known = {each.name for limits in (Limits, TransportLimits) for each in fields(limits)}
    assert {*LIMITS, *QUEUE_LIMITS} <= {*known, "log_lines"}


def test_the_words_of_worker_events_are_those_of_the_transports():
    """Each event of a worker has its own series."""
    assert sorted((*WORKER_EVENTS, *QUEUE_EVENTS)) == sorted(WorkerEvent)


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


def test_a_policy_that_cannot_be_asked_is_counted_as_a_failure(metrics):
    """What it comes to is a failure that says more."""
    labels = decided(metrics, Unavailable(message="x", why=UnavailableReason.UNDESCRIBED))
    assert value(metrics, "policy_verdicts_total", **labels, verdict="failure") == 1


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


def test_the_words_of_the_cache_are_those_of_the_cache():
    """Each result of a lookup and each fault of Redis has its own series; and so have the results of a patrol and
    of a comparison.
    """
    assert set(LOOKUPS) == set(LookupResult)
    assert set(REDIS_ERRORS) == set(RedisFault)
    assert set(PATROLS) == {STABLE, UNSTABLE, FAILED, DROPPED}
    assert set(PATROLLED) == {*PATROLS} - {DROPPED}
    assert set(COMPARED) == {SAME, DIFFERENT, FAILED, DROPPED}


@pytest.mark.parametrize("source", Source)
def test_an_answer_is_counted_by_its_source(metrics, source):
    """Where each answer is from: how much the memo, the cache and a stale verdict spare is their share of all."""
    one = policy("one")
    decision, _ = decide([one], {"one": Allow()})
    metrics.know([one])
    metrics.decided(replace(decision, calls=tuple(replace(call, source=source) for call in decision.calls)))
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert value(metrics, "policy_answers_total", **labels, source=source) == 1
    assert sum(value(metrics, "policy_answers_total", **labels, source=each) for each in Source) == 1


def test_conflicts_are_counted_for_the_later_policy(metrics):
    """One for each field that another policy had written."""
    chain = [policy("one"), policy("two", index=1)]
    metrics.know(chain)
    metrics.decided(decide(chain, {"one": label("x", "1"), "two": label("x", "2")})[0])
    counted = [value(metrics, "policy_conflicts_total", phase="mutating", policy=each.qualified_name) for each in chain]
    assert counted == [0, 1]


def test_a_write_outside_of_the_scope_is_a_failure_that_starts_at_zero(metrics):
    """So that somebody can alert on the first one."""
    one = policy("one")
    metrics.know([one])
    labels = {"phase": "mutating", "policy": one.qualified_name, "reason": "WRITE_SCOPE"}
    assert value(metrics, "policy_failures_total", **labels) == 0
    metrics.decided(decide([one], {"one": patch({"op": "add", "path": "/metadata/finalizers", "value": ["x"]})})[0])
    assert value(metrics, "policy_failures_total", **labels) == 1


def test_early_asks_are_used_or_wasted(metrics):
    """Each early ask counts once: its answer counted for somebody, or for nobody."""
    sees_no_label = Inputs(places=Places([("object", "metadata", "name")]))
    chain = [policy("one"), policy("two", index=1, inputs=sees_no_label), policy("three", index=2)]
    decision, _ = decide(chain, {"one": label("x"), "two": Allow(), "three": Allow()}, early_asks=True)
    # The first one's turn has come: it is not early.
    assert decision.early_asks == 2
    metrics.decided(decision)
    assert [value(metrics, "early_asks_total", result=word) for word in ("used", "wasted")] == [1, 1]


def test_the_cache_counts(metrics):
    """Each event of the cache has its metric."""
    one = policy("one", cache=Cache(ttl=60))
    metrics.know([one])
    metrics.use_redis()
    events = CacheCounting(metrics)
    for result in LookupResult:
        events.looked_up(one, result)
    events.stored(one)
    events.too_large(one)
    events.evicted(3)
    events.write_dropped(4)
    events.seal_failed()
    for fault in RedisFault:
        events.redis_failed(fault)
    events.redis_skipped(skipped=True)
    events.purged(2)
    events.size(1000, 5)
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert [value(metrics, "cache_lookups_total", **labels, result=each) for each in LookupResult] == [1] * len(
        LookupResult
    )
    counted = {word: value(metrics, "cache_entries_total", event=word) for word in ENTRIES}
    assert counted == {"stored": 1, "too_large": 1, "evicted": 3, "write_dropped": 4}
    assert [value(metrics, "cache_redis_errors_total", kind=each) for each in RedisFault] == [1] * len(RedisFault)
    singles = {
        "seal_failures_total": 1,
        "purged_policies_total": 2,
        "redis_skipped": 1,
        "memory_bytes": 1000,
        "memory_entries": 5,
    }
    assert {name: value(metrics, f"cache_{name}") for name in singles} == singles
    metrics.forget_others([])
    assert "one.test" not in metrics.exposition()[1].decode()


def test_a_policy_without_a_cache_has_no_lookups(metrics):
    """A series that never moves tells nobody anything."""
    metrics.know([policy("one")])
    assert "cache_lookups_total{" not in metrics.exposition()[1].decode()


def test_patrols_are_counted(metrics):
    """By their result, and by policy."""
    one = policy("one")
    metrics.know([one])
    metrics.patrolled("dropped")
    metrics.patrolled_policy(one, "unstable")
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert value(metrics, "patrols_total", result="dropped") == 1
    assert value(metrics, "patrolled_policies_total", **labels, result="unstable") == 1


def test_comparisons_with_shadows_are_counted(metrics):
    """By policy and result, from 0 on; a policy without a shadow has none, and one that lost it has none any more."""
    one = policy("one", shadow=Shadow(worker="next", policy="one"))
    metrics.know([one, policy("two")])
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert [value(metrics, "shadow_comparisons_total", **labels, result=each) for each in COMPARED] == [0] * 4
    metrics.compared(one, DIFFERENT)
    assert value(metrics, "shadow_comparisons_total", **labels, result="different") == 1
    assert 'shadow_comparisons_total{phase="mutating",policy="test/two' not in metrics.exposition()[1].decode()
    metrics.forget_others([policy("one")])
    assert "shadow_comparisons_total{" not in metrics.exposition()[1].decode()


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


def test_what_happens_with_workers_is_counted(metrics):
    """By worker and event, from 0; workers of one name count together, and the last one takes its series along."""
    counting = WorkerCounting(metrics)
    for _ in range(2):
        counting.arrived("labels")
    counting.happened("labels", WorkerEvent.RETRY)
    counting.happened("labels", WorkerEvent.STRAY, 3)
    counting.happened("labels", WorkerEvent.IN_FLIGHT)
    counting.connections("labels", 2)
    counting.connections("labels", 1)
    counting.gone("labels")
    events = f"{PREFIX}worker_events_total"
    assert metrics.registry.get_sample_value(events, {"worker": "labels", "event": "retry"}) == 1
    assert metrics.registry.get_sample_value(events, {"worker": "labels", "event": "stray"}) == 3
    assert metrics.registry.get_sample_value(events, {"worker": "labels", "event": "circuit_opened"}) == 0
    assert metrics.registry.get_sample_value(f"{PREFIX}limit_hits_total", {"limit": "worker_in_flight"}) == 1
    assert metrics.registry.get_sample_value(f"{PREFIX}worker_connections", {"worker": "labels"}) == 3
    counting.gone("labels")
    assert metrics.registry.get_sample_value(events, {"worker": "labels", "event": "retry"}) is None
    assert metrics.registry.get_sample_value(f"{PREFIX}worker_connections", {"worker": "labels"}) is None
