"""The metrics of several processes as those of one gateway."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry import series
from gateway.telemetry.merged import merged, parsed, still_configured, with_ended
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import (
    CERTIFICATE_EXPIRATION,
    CONNECTIONS,
    GATEWAY,
    REVIEW_SECONDS,
    REVIEWS,
    WORKER_EVENTS,
)

TOTAL = "admission_gateway_reviews_total"


@pytest.fixture
def processes():
    """The metrics of two processes."""
    return Metrics(), Metrics()


def families(metrics, *, openmetrics=False):
    return parsed(metrics.exposition(openmetrics=openmetrics)[1].decode())


def samples(*processes, retired=None):
    """What is exposed for these processes, by name and labels."""
    live = {number: families(each) for number, each in enumerate(processes, 1)}
    text = "".join(merged(live, retired or {}, GATEWAY))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def allowed(found):
    return found[TOTAL, frozenset({("phase", "validating"), ("outcome", "allowed")})]


def test_counters_and_histograms_add_up(processes):
    """Each sample is the sum of those of all processes."""
    for number, each in enumerate(processes, 1):
        each.count(REVIEWS, "validating", "allowed", amount=number)
        each.observe(REVIEW_SECONDS, 0.002, "validating")
    found = samples(*processes)
    assert allowed(found) == 3
    assert found["admission_gateway_review_duration_seconds_count", frozenset({("phase", "validating")})] == 2


def test_gauges_follow_their_rule(processes):
    """Connections are all of them; the certificate that expires first counts."""
    for number, each in enumerate(processes, 1):
        each.set(CONNECTIONS, number)
        each.set(CERTIFICATE_EXPIRATION, 1000 * number)
    found = samples(*processes)
    assert found["admission_gateway_connections", frozenset()] == 3
    assert found["admission_gateway_certificate_expiration_timestamp_seconds", frozenset()] == 1000


def test_one_process_is_exposed_as_it_is(processes):
    """Nothing is lost or changed of what one process exposes, in either format."""
    process, _ = processes
    process.count(REVIEWS, "validating", "allowed")
    process.observe(REVIEW_SECONDS, 0.002, "validating", trace_id="0af7651916cd43dd8448eb211c80319c")
    for openmetrics in (False, True):
        text = process.exposition(openmetrics=openmetrics)[1].decode().removesuffix("# EOF\n")
        assert "".join(merged({1: parsed(text)}, {}, GATEWAY)) == text


def test_exemplars_of_all_processes_are_kept(processes, monkeypatch):
    """Each bucket has the newest, and the count of all. Prometheus' library reads it."""
    one, two, now = "1" * 32, "2" * 32, iter((1000.25, 1000.75, 999.5, 1000.5))
    monkeypatch.setattr(series, "time", lambda: next(now))
    for each, own, trace_id in zip(processes, (0.002, 0.2), (one, two), strict=True):
        for seconds in (own, 20.0):
            each.observe(REVIEW_SECONDS, seconds, "validating", trace_id=trace_id)
    live = {number: families(each, openmetrics=True) for number, each in enumerate(processes, 1)}
    ended = with_ended({}, live[1])
    buckets = {
        sample.labels["le"]: (sample.value, sample.exemplar)
        for family in read_openmetrics("".join(merged(live, ended, GATEWAY)) + "# EOF\n")
        for sample in family.samples
        if sample.name == "admission_gateway_review_duration_seconds_bucket" and sample.exemplar
    }
    assert {bound: count for bound, (count, _) in buckets.items()} == {"0.0025": 2, "0.25": 3, "30.0": 6}
    found = {bound: exemplar.labels["trace_id"] for bound, (_, exemplar) in buckets.items()}
    assert found == {"0.0025": one, "0.25": two, "30.0": one}
    assert {bound: exemplar.value for bound, (_, exemplar) in buckets.items()} == {
        "0.0025": 0.002,
        "0.25": 0.2,
        "30.0": 20.0,
    }


def test_what_an_ended_process_has_counted_stays(processes):
    """Its counters count on in the sum; its gauges do not."""
    ended, live = processes
    ended.count(REVIEWS, "validating", "allowed", amount=5)
    ended.set(CONNECTIONS, 7)
    retired = with_ended(with_ended({}, families(ended)), families(ended))
    live.count(REVIEWS, "validating", "allowed")
    found = samples(live, retired=retired)
    assert allowed(found) == 11
    assert found["admission_gateway_connections", frozenset()] == 0


def test_what_no_process_has_configured_any_more_is_removed(processes):
    """The counts of a worker go with its last process, unless no process runs at all."""
    ended, live = processes
    ended.worker_added('odd "name", } # {', ["reconnected"])
    ended.worker_added("kept", [])
    ended.count(WORKER_EVENTS, "kept", "timeout")
    live.worker_added("kept", [])
    retired = with_ended({}, families(ended))
    assert still_configured(retired, []) == retired
    workers = {
        labels
        for family in still_configured(retired, [families(live)]).values()
        for _, labels in family.samples
        if "worker=" in labels
    }
    assert workers
    assert all('worker="kept"' in labels for labels in workers)
