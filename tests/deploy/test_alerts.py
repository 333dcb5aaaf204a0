"""Prometheus' rules by promtool: each alert fires when it should, and not when it almost should."""

import re

import pytest
import yaml

from gateway.telemetry.table import BUCKETS, POLICY_VERDICTS, REVIEW_SECONDS, REVIEWS
from tests.deploy.alert_cases import CASES, POLICY, series
from tests.deploy.chart import CHART, RULES, rules
from tests.deploy.promtool import promtool

SAMPLES = 3 * 24 * 30
"""Of the longest window, one in two minutes: the shortest has two of them."""

BURN_RATES = {"1h": ("page", 14.4), "6h": ("page", 6), "1d": ("ticket", 3), "3d": ("ticket", 1)}
"""As the SRE workbook has them, of an objective for 30 days."""


def alerts(text=None):
    """The alerts of a file of rules, by name; of several of one name, a list. None: deploy/prometheus/rules.yaml."""
    found = {}
    for group in _groups(text):
        for rule in group["rules"]:
            if "alert" in rule:
                found.setdefault(rule["alert"], []).append(rule)
    return found


def _groups(text):
    return yaml.safe_load(text or RULES.read_text())["groups"]


def expected(rule, labels, value):
    """The alert that is expected of a rule, in promtool's words."""
    texts = {f"$labels.{name}": text for name, text in labels.items()}
    rendered = {
        name: re.sub(r"{{ (\S+)( \| \w+)? }}", lambda match: texts.get(match[1], value), text)
        for name, text in rule["annotations"].items()
    }
    return {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": rendered}


def check(tmp_path, *tests, every="1m", text=None):
    """Run unit tests of the rules on causes, or of those on objectives, which are evaluated so often."""
    (about,) = {each["alertname"] in CASES for test in tests for each in test["alert_rule_test"]}
    groups = [each for each in _groups(text) if about is _on_causes(each)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    order = [group["name"] for group in groups]
    known = {"rule_files": ["rules.yaml"], "evaluation_interval": every, "group_eval_order": order}
    path = tmp_path / "tests.yaml"
    path.write_text(yaml.safe_dump({**known, "tests": tests}))
    promtool("test", "rules", str(path))


def _on_causes(group):
    return any(rule.get("alert") in CASES for rule in group["rules"])


def unit(given, minutes, name, *wanted, interval="1m"):
    """A unit test: of these series, after so many minutes, this alert fires as wanted."""
    return {
        "interval": interval,
        "input_series": [{"series": each, "values": values} for each, values in given],
        "alert_rule_test": [{"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": list(wanted)}],
    }


def test_the_rules_are_the_charts():
    """After a change of the chart: `make manifests`."""
    assert RULES.read_text() == rules()


def test_promtool_has_nothing_to_object():
    """The rules are read as Prometheus reads them, and none is there twice."""
    promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))


def test_every_alert_has_its_cases():
    """A new alert comes with series that make it fire."""
    assert CASES.keys() == alerts().keys() - {name for name, _, _ in OBJECTIVES}


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires(name, tmp_path):
    """It fires of what it is for, with the labels that tell what is affected, and not of what is next to that."""
    case = CASES[name]
    (rule,) = alerts()[name]
    check(
        tmp_path,
        *(
            unit(given, case.minutes, name, expected(rule, case.labels, case.value))
            for given in (case.fires, *([each] for each in case.alone))
        ),
        unit(case.silent, case.minutes, name),
    )


# ---------------------------------------------------------------------------------------------- on objectives


def _availability(bad, good):
    return [
        series(REVIEWS, bad, phase="mutating", outcome="failed"),
        series(REVIEWS, good, phase="mutating", outcome="denied"),
    ]


def _latency(bad, good):
    fast = series(REVIEW_SECONDS, good, suffix="_bucket", phase="mutating")
    return [
        (fast[0].replace("{", '{le="0.5",'), good),
        # Prometheus adds what is written so: all are the fast ones and the slow ones.
        series(REVIEW_SECONDS, _sum(good, bad), suffix="_count", phase="mutating"),
    ]


def _sum(one, other):
    """The sum of two series, each of parts ``START+STEPxCOUNT``."""
    parts = [re.findall(r"(\d+)\+(\d+)x(\d+)", each) for each in (one, other)]
    return " ".join(
        f"{int(a) + int(b)}+{int(c) + int(d)}x{count}" for (a, c, count), (b, d, _) in zip(*parts, strict=True)
    )


def _policies(bad, good):
    return [
        series(POLICY_VERDICTS, bad, verdict="failure", **POLICY),
        series(POLICY_VERDICTS, good, verdict="allow", **POLICY),
    ]


OBJECTIVES = [
    ("AdmissionAvailabilityBurnRate", 99.9, _availability),
    ("AdmissionLatencyBurnRate", 99, _latency),
    ("AdmissionPolicyBurnRate", 99, _policies),
]

OTHER_OBJECTIVES = {
    "AdmissionAvailabilityBurnRate": ("availability", 99.5),
    "AdmissionLatencyBurnRate": ("latency.percent", 97.5),
    "AdmissionPolicyBurnRate": ("policies", 95.5),
}
"""The chart's value of each, and a percentage that is no default."""


def _labels(name):
    """What an alert on an objective is about."""
    return {"job": "gateway", **POLICY} if "Policy" in name else {"job": "gateway", "phase": "mutating"}


def _burning(name, percent, share, text):
    """The alerts of this name that are expected while this share of events is bad."""
    labels = _labels(name)
    found = {rule["labels"]["window"]: rule for rule in alerts(text)[name]}
    assert {window: rule["labels"]["severity"] for window, rule in found.items()} == {
        window: severity for window, (severity, _) in BURN_RATES.items()
    }
    return [
        expected(found[window], labels, f"{share * 100:.4g}%")
        for window, (_, factor) in BURN_RATES.items()
        if share > factor * (1 - percent / 100)
    ]


@pytest.mark.parametrize("configured", [False, True], ids=["default", "configured"])
@pytest.mark.parametrize(("name", "percent", "given"), OBJECTIVES)
def test_an_objective_is_burning(name, percent, given, configured, tmp_path):
    """Of a share of bad events, the alerts fire whose burn rate it exceeds, and no other: by the chart's values."""
    text = None
    if configured:
        value, percent = OTHER_OBJECTIVES[name]
        text = rules("--set-json", f"monitoring.prometheusRule.objectives.{value}={percent}")
    allowed = 1 - percent / 100
    tests = []
    for factor in (20, 10, 4.5, 2, 0.5):
        bad = round(factor * allowed * 10_000)
        tests.append(
            unit(
                given(f"0+{bad}x{SAMPLES}", f"0+{10_000 - bad}x{SAMPLES}"),
                2 * SAMPLES,
                name,
                *_burning(name, percent, bad / 10_000, text),
                interval="2m",
            )
        )
    assert [len(each["alert_rule_test"][0]["exp_alerts"]) for each in tests] == [4, 3, 2, 1, 0]
    check(tmp_path, *tests, every="1h", text=text)


@pytest.mark.parametrize(("name", "percent", "given"), OBJECTIVES)
def test_what_is_over_is_no_longer_burning(name, percent, given, tmp_path):
    """Some minutes after the last bad event the alert for the last hour ends, though much of the hour was bad."""
    bad = round(20 * (1 - percent / 100) * 10_000)
    burning = given(f"0+{bad}x60 {bad * 60}+0x60", f"0+{10_000 - bad}x60 {(10_000 - bad) * 60}+10000x60")
    firing = f'count(ALERTS{{alertname="{name}", window="1h", alertstate="firing"}})'
    both = unit(burning, 70, name)
    both["alert_rule_test"][0]["eval_time"] = "0m"
    both["promql_expr_test"] = [
        {"expr": firing, "eval_time": "60m", "exp_samples": [{"labels": "{}", "value": 1}]},
        {"expr": firing, "eval_time": "70m", "exp_samples": []},
    ]
    check(tmp_path, both)


@pytest.mark.parametrize(("name", "percent", "given"), OBJECTIVES)
def test_a_handful_of_failures_wakes_no_one(name, percent, given, tmp_path):
    """Five bad events in a quiet night, all that there were, make tickets and no page."""
    few = given("0+0x10 1+1x4 5+0x30", "0+0x10 0+0x4 0+0x30")
    labels = _labels(name)
    tickets = [expected(rule, labels, "100%") for rule in alerts()[name] if rule["labels"]["severity"] == "ticket"]
    check(tmp_path, unit(few, 14, name, *tickets))


def test_a_latency_is_a_bound_of_the_histogram():
    """The chart accepts the buckets of the histogram, and writes them as /metrics does."""
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())["properties"]["monitoring"]["properties"]
    objectives = schema["prometheusRule"]["properties"]["objectives"]["properties"]
    assert tuple(objectives["latency"]["properties"]["seconds"]["enum"]) == BUCKETS
    for bound in BUCKETS:
        made = rules("--set-json", f"monitoring.prometheusRule.objectives.latency.seconds={bound}")
        assert f'{{le="{float(bound)!r}"}}' in made


def test_the_runbooks_address_is_that_of_the_values():
    """Every alert leads to its section of the page at this address."""
    base = "https://runbooks.example.com/gateway"
    made = yaml.safe_load(rules("--set", f"monitoring.prometheusRule.runbooks={base}"))
    found = [rule for group in made["groups"] for rule in group["rules"] if "alert" in rule]
    assert {rule["annotations"]["runbook_url"] for rule in found} == {
        f"{base}#{rule['alert'].lower()}" for rule in found
    }
