"""Series are written as Prometheus reads them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.series import HistogramSeries, Series, heading

TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)


def read(kind, text, series):
    """The samples of a metric, as Prometheus' client library reads them in both formats."""
    (found,) = text_string_to_metric_families(heading("x", kind, text, openmetrics=False) + series.text())
    openmetrics = heading("x", kind, text, openmetrics=True) + series.text(exemplars=True) + "# EOF\n"
    (same,) = read_openmetrics(openmetrics)
    assert found.type == same.type == kind
    assert [(each.name, each.labels, each.value) for each in found.samples] == [
        (each.name, each.labels, each.value) for each in same.samples
    ]
    return same.samples


@pytest.mark.property
@given(TEXT, TEXT, st.floats(allow_nan=False))
def test_whatever_a_label_and_a_text_hold_is_read_back(value, text, number):
    """Backslashes, quotes and line ends included; every number is the same number."""
    series = Series("x", (["policy", ""], [value, "left out"]))
    series.value = number
    (sample,) = read("gauge", text, series)
    assert (sample.name, sample.labels, sample.value) == ("x", {"policy": value}, number)


@pytest.mark.property
@given(st.lists(st.floats(min_value=0, max_value=100)))
def test_a_histogram_counts_what_is_at_most_as_large_as_each_bound(observed):
    """Buckets are cumulative, the bounds included, and the last one has all."""
    series = HistogramSeries("x", ((), ()), (0.5, 1, 30))
    for each in observed:
        series.observe(each)
    samples = {(each.name, each.labels.get("le")): each.value for each in read("histogram", "t", series)}
    for bound in ("0.5", "1.0", "30.0", "+Inf"):
        assert samples["x_bucket", bound] == sum(each <= float(bound) for each in observed)
    assert samples["x_count", None] == len(observed)
    assert math.isclose(samples["x_sum", None], math.fsum(observed), abs_tol=1e-6)


def test_labels_are_in_the_order_of_their_names():
    """As Prometheus' client libraries write them, whatever order a metric declares."""
    series = Series("x", (["phase", "outcome"], ["mutating", "denied"]))
    assert series.text() == 'x{outcome="denied",phase="mutating"} 0.0\n'


def test_a_bucket_has_the_trace_of_its_last_sampled_observation():
    """In OpenMetrics alone; an observation without a trace leaves it."""
    series = HistogramSeries("x", (["phase"], ["mutating"]), (0.5, 1))
    for value, trace in ((0.1, "a" * 32), (0.2, "b" * 32), (0.3, ""), (2, "c" * 32)):
        series.observe(value, trace)
    found = {each.labels["le"]: each.exemplar for each in read("histogram", "t", series) if "le" in each.labels}
    assert {bound: each and (each.labels, each.value) for bound, each in found.items()} == {
        "0.5": ({"trace_id": "b" * 32}, 0.2),
        "1.0": None,
        "+Inf": ({"trace_id": "c" * 32}, 2),
    }
    assert "#" not in series.text()
