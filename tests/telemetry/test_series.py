"""Series are written as Prometheus reads them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.series import HistogramSeries, Series, family

TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)


def read(lines):
    """The samples in a family's lines."""
    (found,) = text_string_to_metric_families("".join(lines))
    return found.samples


@pytest.mark.property
@given(TEXT, TEXT, st.floats(allow_nan=False))
def test_whatever_a_label_and_a_text_hold_is_read_back(value, text, number):
    """Backslashes, quotes and line ends included; every number is the same number."""
    series = Series("x", (["policy", ""], [value, "left out"]))
    series.value = number
    (sample,) = read(family("x", "gauge", text, [series]))
    assert (sample.name, sample.labels, sample.value) == ("x", {"policy": value}, number)


@pytest.mark.property
@given(st.lists(st.floats(min_value=0, max_value=100)))
def test_a_histogram_counts_what_is_at_most_as_large_as_each_bound(observed):
    """Buckets are cumulative, the bounds included, and the last one has all."""
    series = HistogramSeries("x", ((), ()), (0.5, 1, 30))
    for each in observed:
        series.observe(each)
    samples = {(each.name, each.labels.get("le")): each.value for each in read(family("x", "histogram", "t", [series]))}
    for bound in ("0.5", "1.0", "30.0", "+Inf"):
        assert samples["x_bucket", bound] == sum(each <= float(bound) for each in observed)
    assert samples["x_count", None] == len(observed)
    assert math.isclose(samples["x_sum", None], math.fsum(observed), abs_tol=1e-6)


def test_labels_are_in_the_order_of_their_names():
    """As Prometheus' client libraries write them, whatever order a metric declares."""
    assert list(Series("x", (["phase", "outcome"], ["mutating", "denied"])).lines()) == [
        'x{outcome="denied",phase="mutating"} 0.0\n'
    ]
