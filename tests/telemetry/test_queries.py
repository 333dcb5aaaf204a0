"""What dashboards and rules for Prometheus ask for is in the table of metrics: names, labels, values of labels."""

import re

import pytest
import yaml

from gateway.telemetry.table import (
    BRIDGE,
    BRIDGE_PREFIX,
    CLUSTER,
    GATEWAY,
    HOOK_WORKER,
    HOOK_WORKER_PREFIX,
    PREFIX,
    PROCESSES,
    REDIS,
    WEBHOOK_PROBE,
)
from tests.deploy.chart import RULES
from tests.deploy.dashboards import dashboards, expressions

TABLE = {
    f"{prefix if metric.prefixed else ''}{metric.name}": metric.labels
    for prefix, metrics in (
        (PREFIX, (*GATEWAY, *PROCESSES, *CLUSTER, *WEBHOOK_PROBE, *REDIS)),
        (BRIDGE_PREFIX, BRIDGE),
        (HOOK_WORKER_PREFIX, HOOK_WORKER),
    )
    for metric in metrics
}

SCRAPED = {"job": None, "instance": None}
"""Labels that Prometheus adds."""

_METRIC = re.compile(r"(?<![\w:])((?:job|admission|process)[\w:]*_[\w:]*\w)(?:\{([^}]*)\})?")
_MATCH = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')
_BY = re.compile(r"by \(([^)]*)\)")
_PARTS = re.compile(r"_(?:bucket|count|sum)$")


_RULES = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
RECORDED = {rule["record"] for rule in _RULES if "record" in rule}

QUERIES = {
    **{f"{rule.get('alert') or rule['record']} {place}": rule["expr"] for place, rule in enumerate(_RULES)},
    **{f"{uid} {place}": each for uid, made in dashboards().items() for place, each in enumerate(expressions(made))},
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_of_the_table(query):
    """It names metrics of the table, or what the rules record, labels that these have, and values of these labels."""
    asked = _METRIC.findall(QUERIES[query])
    assert asked or QUERIES[query].startswith("vector(")
    labels = {}
    for metric, inside in asked:
        if metric in RECORDED:
            continue
        known = {**TABLE[metric if metric in TABLE else _PARTS.sub("", metric)], **SCRAPED, "le": None}
        labels |= known
        for label, value in _MATCH.findall(inside):
            values = known[label]
            assert values is None or value.startswith("$") or set(value.split("|")) <= set(values)
    for by in _BY.findall(QUERIES[query]):
        assert set(by.split(", ")) <= labels.keys()
