"""The metrics: one table, its words, and what is counted when."""

import asyncio

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from gateway.engine.answer_source import Source
from gateway.engine.decision import ANSWERED
from gateway.engine.engine import Engine
from gateway.engine.object_state import DIFFERENCE_STEPS, PATCH_WORK
from gateway.engine.plan import Unavailable, UnavailableReason
from gateway.engine.trace_context import TraceContext
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Cache, FailurePolicy, Phase, Shadow
from gateway.reasons import Reason
from gateway.redis.faults import RedisFault
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.serving.idempotency_check import STABLE, UNSTABLE
from gateway.serving.limits import Limits
from gateway.serving.own_refusals import internal
from gateway.serving.refusals import Refusal
from gateway.serving.replay import DROPPED, FAILED
from gateway.serving.shadow_comparison import DIFFERENT, SAME
from gateway.slices import finished
from gateway.telemetry import table
from gateway.telemetry.events import Metric
from gateway.telemetry.labels import (
    GRPC_EVENTS,
    HOOK_EVENTS,
    LIMIT_OF,
    QUEUE_EVENTS,
    WEBHOOK_EVENTS,
    ConsumerEvent,
    LookupResult,
    Transport,
    WorkerEvent,
)
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import (
    BRIDGE,
    BRIDGE_EVENTS,
    BRIDGE_PREFIX,
    CACHE_LOOKUPS,
    CACHE_MEMORY_BYTES,
    CACHE_REDIS_ERRORS,
    CLUSTER,
    COMPARED,
    ENTRY_REVIEWS,
    GATEWAY,
    HOOK_WORKER,
    HTTP_REQUESTS_REJECTED,
    IDEMPOTENCY_CHECK_RESULTS,
    IDEMPOTENCY_RESULTS,
    LIMIT_HITS,
    LIMITS,
    NOT_A_REVIEW,
    POLICY_CALL_SECONDS,
    PREFIX,
    PROCESSES,
    REDIS,
    REDIS_ERRORS,
    REFUSALS,
    SHADOW_COMPARISONS,
    WEBHOOK_PROBE,
    WORKER_CALL_SECONDS,
    WORKER_CONNECTIONS,
)
from gateway.transports.limits import TransportLimits
from gateway.transports.worker_channel import count_worker_event
from tests.samples import sample_value
from tests.world import decide, label, patch, plan, policy, request

FAILURE = Failure(reason=Reason.WORKER_FAILURE, message="x")


@pytest.fixture
def metrics():
    return Metrics()


def value(metrics, name, **labels):
    return sample_value(metrics, PREFIX + name, labels)


def decided(metrics, answer, *, phase=Phase.MUTATING, failure_policy=FailurePolicy.FAIL, on=None):
    """Count the decision of one policy that gives this answer."""
    one = policy("one", phase=phase, failure_policy=failure_policy)
    metrics.know([one], [])
    decision, _ = decide([one], {"one": answer}, on=on)
    metrics.decided(decision)
    return {"phase": phase.value, "policy": one.qualified_name}


def test_the_words_of_refusals_are_those_of_the_front():
    """Each refusal of the front has its own series, and not_a_review is the judge's."""
    assert set(REFUSALS) == {*Refusal, NOT_A_REVIEW}
    assert list(REFUSALS) == sorted(REFUSALS)


def test_the_words_of_limits_are_those_of_the_limits():
    """Each limit that is counted is one of Limits or TransportLimits, or of former entries, or of workers' changes."""
    known = {*Limits.limits, *TransportLimits.limits}
    assert {*LIMITS, *LIMIT_OF.values()} <= {*known, "former_entry_policies", DIFFERENCE_STEPS, PATCH_WORK}


def test_every_event_of_a_worker_is_one_of_a_transport():
    """So each has its own series, where it can happen."""
    assert {*GRPC_EVENTS, *WEBHOOK_EVENTS, *QUEUE_EVENTS, *HOOK_EVENTS} == {*WorkerEvent}


def test_every_metric_of_the_table_has_an_owner():
    """What the module defines, a gateway or a bridge shows."""
    defined = {value for value in vars(table).values() if isinstance(value, Metric)}
    assert defined == {*GATEWAY, *CLUSTER, *WEBHOOK_PROBE, *REDIS, *PROCESSES, *BRIDGE, *HOOK_WORKER}


def test_counters_start_at_zero(metrics):
    """Whatever can be counted is there before it happens: absence means something."""
    metrics.know([policy("one", phase=Phase.VALIDATING)], [])
    families = text_string_to_metric_families(metrics.exposition()[1].decode())
    samples = [sample for family in families for sample in family.samples]
    assert {sample.value for sample in samples} == {0.0}
    rejected = [sample for sample in samples if sample.name.endswith("http_requests_rejected_total")]
    assert {sample.labels["reason"] for sample in rejected} == set(REFUSALS)
    assert {sample.labels["limit"] for sample in samples if "limit" in sample.labels} == set(LIMITS)
    assert {sample.labels["policy"] for sample in samples if "policy" in sample.labels} == {"test/one.test.example.com"}


def test_all_names_are_ours_or_those_of_every_process(metrics):
    """Each series has our prefix, or Prometheus' for a process; and none has a twin that says when it began."""
    families = list(text_string_to_metric_families(metrics.exposition()[1].decode()))
    assert [family.name for family in families if not family.name.startswith((PREFIX, "process_"))] == []
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
    assert value(metrics, "review_duration_seconds_count", phase=phase) == 1
    assert value(metrics, "policy_verdicts_total", **labels, verdict=verdict) == 1
    others = {"allow", "deny", "failure"} - {verdict}
    assert [value(metrics, "policy_verdicts_total", **labels, verdict=other) for other in others] == [0, 0]


def test_a_canceled_review_is_in_no_ratio_of_answers(metrics):
    """It has none: neither a review nor its time counts, only what its policies had said before."""
    pair = [policy(name, phase=Phase.VALIDATING, index=index) for index, name in enumerate(("one", "two"))]
    metrics.know(pair, [])
    engine = Engine(request(), plan(*pair), ends=110.0)
    engine.answered(engine.start(100.0).calls[0], Deny(message="no"), 101.0)
    metrics.decided(engine.abandoned(102.0).decision)
    assert [value(metrics, "reviews_total", phase="validating", outcome=each) for each in ANSWERED] == [0, 0, 0]
    assert value(metrics, "review_duration_seconds_count", phase="validating") == 0
    verdicts = [
        value(metrics, "policy_verdicts_total", phase="validating", policy=each.qualified_name, verdict="deny")
        for each in pair
    ]
    assert verdicts == [1, 0]


@pytest.mark.parametrize("record", [None, Allow(), Deny(message="no")])
def test_what_the_gateway_refuses_itself_is_a_bad_event(metrics, record):
    """Of the objective of availability, whatever the policies had said."""
    decision, _ = decide([policy("one")], {"one": record or Allow()})
    metrics.decided(internal(decision))
    assert value(metrics, "reviews_total", phase="mutating", outcome="failed") == 1
    assert value(metrics, "review_duration_seconds_count", phase="mutating") == 1


def test_a_policy_that_cannot_be_called_is_counted_as_a_failure(metrics):
    """What it comes to is a failure."""
    labels = decided(metrics, Unavailable(message="x", why=UnavailableReason.UNDESCRIBED).failure)
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


def test_the_words_of_results_are_those_of_who_comes_to_them():
    """Each fault of Redis has its own series; and so have the results of an idempotency check and of a comparison."""
    assert set(REDIS_ERRORS) == set(RedisFault)
    assert set(IDEMPOTENCY_CHECK_RESULTS) == {STABLE, UNSTABLE, FAILED, DROPPED}
    assert set(IDEMPOTENCY_RESULTS) == {*IDEMPOTENCY_CHECK_RESULTS} - {DROPPED}
    assert set(COMPARED) == {SAME, DIFFERENT, FAILED, DROPPED}


@pytest.mark.parametrize("source", Source)
def test_an_answer_is_counted_by_its_source(metrics, source):
    """Where each answer is from: how much the memo, the cache and a stale verdict spare is their share of all."""
    one = policy("one")
    decision, _ = decide([one], {"one": Allow()})
    metrics.know([one], [])
    metrics.decided(replace(decision, calls=tuple(replace(call, source=source) for call in decision.calls)))
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert value(metrics, "policy_answers_total", **labels, source=source) == 1
    assert sum(value(metrics, "policy_answers_total", **labels, source=each) for each in Source) == 1


def test_the_time_that_is_left_is_measured(metrics):
    """Of each review; and a review whose time ended before all policies were called is counted once."""
    chain = [policy("one"), policy("two", index=1)]
    decision, _ = decide(chain, {"one": Allow(), "two": Allow()})
    metrics.decided(replace(decision, ended=decision.started + 0.2, ends=decision.started + 1.0))
    assert value(metrics, "review_budget_remaining_seconds_sum", phase="mutating") == pytest.approx(0.8)
    exhausted = Failure(reason=Reason.BUDGET_EXHAUSTED, message="x")
    failed = replace(decision, calls=tuple(replace(call, answer=exhausted) for call in decision.calls))
    metrics.decided(replace(failed, ended=decision.started + 1.1, ends=decision.started + 1.0))
    assert value(metrics, "review_budget_remaining_seconds_bucket", phase="mutating", le="0.0") == 1
    assert value(metrics, "review_budget_exhausted_total", phase="mutating") == 1


def test_a_sampled_review_is_an_exemplar(metrics):
    """Its trace id is that of the review's trace, in OpenMetrics."""
    decision, _ = decide([policy("one")], {"one": Allow()})
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-0"
    metrics.decided(replace(decision, trace=TraceContext(traceparent=traceparent + "0")))
    assert b"trace_id" not in metrics.exposition(openmetrics=True)[1]
    metrics.decided(replace(decision, trace=TraceContext(traceparent=traceparent + "1")))
    _, text = metrics.exposition(openmetrics=True)
    (line,) = [line for line in text.decode().splitlines() if "0af7651916cd43dd8448eb211c80319c" in line]
    assert line.startswith("admission_gateway_review_duration_seconds_bucket{le=")


async def test_metrics_are_written_while_other_tasks_run(metrics):
    """Piece by piece, with the same result."""
    metrics.know([policy(f"p{number}") for number in range(200)], [])
    turns = 0

    async def count_turns():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    assert await metrics.written() == metrics.exposition()
    counting.cancel()
    assert turns > 20


def test_conflicts_are_counted_for_the_later_policy(metrics):
    """One for each field that another policy had written."""
    chain = [policy("one"), policy("two", index=1)]
    metrics.know(chain, [])
    metrics.decided(decide(chain, {"one": label("x", "1"), "two": label("x", "2")})[0])
    counted = [value(metrics, "policy_conflicts_total", phase="mutating", policy=each.qualified_name) for each in chain]
    assert counted == [0, 1]


def test_a_write_outside_of_the_scope_is_a_failure_that_starts_at_zero(metrics):
    """So that an alert can fire on the first one."""
    one = policy("one")
    metrics.know([one], [])
    labels = {"phase": "mutating", "policy": one.qualified_name, "reason": "WRITE_SCOPE"}
    assert value(metrics, "policy_failures_total", **labels) == 0
    metrics.decided(decide([one], {"one": patch({"op": "add", "path": "/metadata/finalizers", "value": ["x"]})})[0])
    assert value(metrics, "policy_failures_total", **labels) == 1


def test_prefetched_calls_are_used_or_wasted(metrics):
    """Each prefetched call counts once: its answer was used, or was not."""
    sees_no_label = Inputs(places=PointerSet([("object", "metadata", "name")]))
    chain = [policy("one"), policy("two", index=1, inputs=sees_no_label), policy("three", index=2)]
    decision, _ = decide(chain, {"one": label("x"), "two": Allow(), "three": Allow()}, prefetch=True)
    # The first one's turn has come: it is not early.
    assert decision.prefetches == 2
    metrics.decided(decision)
    assert [value(metrics, "policy_prefetches_total", result=word) for word in ("used", "wasted")] == [1, 1]


def test_a_lookup_is_counted_for_its_policy(metrics):
    """By its result; and its series go with the policy."""
    one = policy("one", cache=Cache(ttl=60))
    metrics.know([one], [])
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert [value(metrics, "cache_lookups_total", **labels, result=each) for each in LookupResult] == [0] * 8
    metrics.count(CACHE_LOOKUPS, one.phase, one.qualified_name, LookupResult.STALE)
    assert value(metrics, "cache_lookups_total", **labels, result="stale") == 1
    finished(metrics.forgetting_others(lambda: [policy("one")], list))
    assert "cache_lookups_total{" not in metrics.exposition()[1].decode()


def test_a_gauge_says_what_it_was_set_to(metrics):
    """And what it was changed by since."""
    metrics.set(CACHE_MEMORY_BYTES, 1000)
    metrics.count(CACHE_MEMORY_BYTES, amount=-1)
    assert value(metrics, "cache_memory_bytes") == 999


def test_what_a_process_has_no_metric_for_goes_nowhere(metrics):
    """Without Redis there are no metrics of it, and nothing breaks; from when it is used, they start at 0."""
    metrics.count(CACHE_REDIS_ERRORS, RedisFault.TIMEOUT)
    assert value(metrics, "cache_redis_errors_total", reason="timeout") is None
    metrics.use(REDIS)
    assert value(metrics, "cache_redis_errors_total", reason="timeout") == 0
    metrics.count(CACHE_REDIS_ERRORS, RedisFault.TIMEOUT)
    assert value(metrics, "cache_redis_errors_total", reason="timeout") == 1


def test_a_bridge_has_one_worker():
    """Its metrics are the same, under a prefix of their own and without the label that would say which."""
    metrics = Metrics(BRIDGE, prefix=BRIDGE_PREFIX)
    metrics.worker_added("q", GRPC_EVENTS)
    count_worker_event(metrics, "q", WorkerEvent.UNSOLICITED_LIMIT)
    metrics.count(WORKER_CONNECTIONS, "q", amount=2)
    metrics.count(BRIDGE_EVENTS, ConsumerEvent.LATE, amount=3)
    assert value(metrics, "bridge_worker_events_total", event="unsolicited_limit") == 1
    assert value(metrics, "bridge_worker_events_total", event="retry") == 0
    assert value(metrics, "bridge_worker_connections") == 2
    assert value(metrics, "bridge_events_total", event="late") == 3
    metrics.worker_removed("q")


def test_a_policy_without_a_cache_has_no_lookups(metrics):
    """A series that never moves is useless."""
    metrics.know([policy("one")], [])
    assert "cache_lookups_total{" not in metrics.exposition()[1].decode()


def test_comparisons_with_shadows_are_counted(metrics):
    """By policy and result, from 0 on; a policy without a shadow has none, and one that lost it has none any more."""
    one = policy("one", shadow=Shadow(worker="next", policy="one"))
    metrics.know([one, policy("two")], [])
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert [value(metrics, "shadow_comparisons_total", **labels, result=each) for each in COMPARED] == [0] * 4
    metrics.count(SHADOW_COMPARISONS, one.phase, one.qualified_name, DIFFERENT)
    assert value(metrics, "shadow_comparisons_total", **labels, result="different") == 1
    assert 'shadow_comparisons_total{phase="mutating",policy="test/two' not in metrics.exposition()[1].decode()
    finished(metrics.forgetting_others(lambda: [policy("one")], list))
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
    metrics.count(ENTRY_REVIEWS, Phase.MUTATING, "chain.one", decision.outcome)
    metrics.count(ENTRY_REVIEWS, Phase.MUTATING, "chain.two", decision.outcome)
    finished(metrics.forgetting_others(lambda: [one], lambda: [(Phase.MUTATING, "chain.one")]))
    assert "two.test" not in metrics.exposition()[1].decode()
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert value(metrics, "policy_failures_total", **labels, reason="WORKER_FAILURE") == 1
    assert value(metrics, "entry_reviews_total", phase="mutating", entry="chain.one", outcome="failed") == 1
    metrics.decided(decision)
    finished(metrics.forgetting_others(list, list))
    assert "one.test" not in metrics.exposition()[1].decode()


def test_durations_go_with_their_policy_and_their_worker(metrics):
    """Of policies only those that were called have them."""
    one, two = policy("one"), policy("two")
    metrics.know([one, two], [])
    assert "policy_call_duration_seconds_bucket" not in metrics.exposition()[1].decode()
    for each in (one, two):
        metrics.observe(POLICY_CALL_SECONDS, 0.1, each.phase, each.qualified_name)
    metrics.know([one], [])
    finished(metrics.forgetting_others(lambda: [one], list))
    labels = {"phase": "mutating", "policy": one.qualified_name}
    assert value(metrics, "policy_call_duration_seconds_count", **labels) == 1
    assert "two.test" not in metrics.exposition()[1].decode()
    metrics.worker_added("labels", GRPC_EVENTS)
    metrics.observe(WORKER_CALL_SECONDS, 0.1, "labels", Transport.GRPC)
    metrics.worker_removed("labels")
    assert 'worker="labels"' not in metrics.exposition()[1].decode()


def test_any_number_of_configurations_leaves_as_many_series_as_the_last(metrics):
    """What a thousand reloads bring and take away leaves nothing behind."""
    metrics.know([policy("stays")], [(Phase.MUTATING, "chain.stays")])
    before = len(metrics.exposition()[1].splitlines())
    for number in range(100):
        metrics.know([policy("stays"), policy(f"p{number}")], [(Phase.VALIDATING, f"group.p{number}")])
        finished(metrics.forgetting_others(lambda: [policy("stays")], lambda: [(Phase.MUTATING, "chain.stays")]))
    assert len(metrics.exposition()[1].splitlines()) == before


def test_labels_are_bounded(metrics):
    """Unforeseen words share one series, however many there are."""
    for number in range(100):
        metrics.count(HTTP_REQUESTS_REJECTED, f"new-{number}")
        metrics.count(LIMIT_HITS, f"new-{number}")
    assert value(metrics, "http_requests_rejected_total", reason="other") == 100
    assert value(metrics, "limit_hits_total", limit="other") == 100
    text = metrics.exposition()[1].decode()
    assert "new-" not in text


def test_what_happens_with_workers_is_counted(metrics):
    """By worker and event, from 0; workers of one name count together, and the last one takes its series along."""
    for _ in range(2):
        metrics.worker_added("labels", GRPC_EVENTS)
    assert value(metrics, "limit_hits_total", limit="worker_in_flight") == 0
    count_worker_event(metrics, "labels", WorkerEvent.RETRY)
    count_worker_event(metrics, "labels", WorkerEvent.UNSOLICITED, 3)
    count_worker_event(metrics, "labels", WorkerEvent.IN_FLIGHT)
    metrics.count(WORKER_CONNECTIONS, "labels", amount=2)
    metrics.count(WORKER_CONNECTIONS, "labels", amount=1)
    metrics.worker_removed("labels")
    counted = {event: value(metrics, "worker_events_total", worker="labels", event=event) for event in GRPC_EVENTS}
    assert counted == dict.fromkeys(GRPC_EVENTS, 0) | {"retry": 1, "unsolicited": 3, "in_flight": 1}
    assert value(metrics, "limit_hits_total", limit="worker_in_flight") == 1
    assert value(metrics, "worker_connections", worker="labels") == 3
    metrics.worker_removed("labels")
    assert 'worker="labels"' not in metrics.exposition()[1].decode()


def test_a_worker_has_series_of_what_can_happen_with_it(metrics):
    """None of a queue where there is none."""
    metrics.worker_added("labels", GRPC_EVENTS)
    text = metrics.exposition()[1].decode()
    assert [
        word for word in (*QUEUE_EVENTS, *HOOK_EVENTS) if word not in GRPC_EVENTS and f'event="{word}"' in text
    ] == []
    assert 'limit="queue_length"' not in text


def test_the_counters_of_many_policies_begin_in_slices():
    """The same as at once."""
    many = [policy(f"p{number}", phase=Phase.VALIDATING, index=number) for number in range(1_000)]
    entries = [(Phase.VALIDATING, f"e{number}") for number in range(1_000)]
    at_once, sliced = Metrics(), Metrics()
    at_once.know(many, entries)
    assert len([*sliced.knowing(many, entries)]) >= 10
    assert sliced.exposition() == at_once.exposition()
