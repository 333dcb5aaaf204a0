"""A real Prometheus with the rules scrapes a real gateway, and answers what the dashboards ask."""

import asyncio
import json
import subprocess
import urllib.parse
import urllib.request

import pytest
import yaml

from tests.deploy.chart import ROOT, RULES
from tests.deploy.dashboards import dashboards, expressions, filled
from tests.deploy.promtool import program
from tests.deploy.test_pod import free_port
from tests.integration.fixtures import certificates, pair, serving, trust
from tests.integration.process import WAIT_SECONDS, Lines
from tests.integration.running import until

__all__ = ["certificates", "pair", "serving", "trust"]

TRACE = "0af7651916cd43dd8448eb211c80319c"
JOB = "admission-gateway"


class Prometheus:
    """Prometheus in a folder of its own, which scrapes the admin listener at this port."""

    def __init__(self, root, port):
        self.port = free_port()
        scraped = [{"job_name": JOB, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]
        known = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (root / "prometheus.yml").write_text(
            yaml.safe_dump({"global": known, "rule_files": [str(RULES)], "scrape_configs": scraped})
        )
        arguments = {
            "config.file": root / "prometheus.yml",
            "storage.tsdb.path": root / "data",
            "web.listen-address": f"127.0.0.1:{self.port}",
            "enable-feature": "exemplar-storage",
        }
        line = [program("prometheus"), *(f"--{name}={value}" for name, value in arguments.items())]
        self.process = subprocess.Popen(line, stderr=subprocess.PIPE)
        self.log = Lines(self.process.stderr)

    def ready(self):
        """Wait until it serves."""
        assert self.log.find(lambda line: "ready to receive web requests" in line), "\n".join(self.log)
        return self

    def get(self, path, **parameters):
        """The data of an answer of its API; HTTPError if it refuses."""
        query = urllib.parse.urlencode(parameters)
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}"
        with urllib.request.urlopen(url, timeout=WAIT_SECONDS) as answer:
            return json.load(answer)["data"]

    def stop(self):
        """End it."""
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)
        self.log.all()


@pytest.fixture(scope="module")
def gateway(serving, trust):
    """A gateway with the example policies and their worker, that has decided the example reviews in one trace."""
    process = serving("--policies", ROOT / "examples/policies").ready()
    for path in sorted((ROOT / "examples/reviews").glob("*.json")):
        for phase in ("mutate", "validate"):
            request = urllib.request.Request(
                f"https://localhost:{process.port}/{phase}?timeout=10s",
                data=path.read_bytes(),
                headers={"Content-Type": "application/json", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
            )
            urllib.request.urlopen(request, timeout=WAIT_SECONDS, context=trust).close()  # noqa: S310 - it is https
    return process


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory, gateway):
    """It has scraped the gateway twice, and evaluated the rules."""
    started = Prometheus(tmp_path_factory.mktemp("prometheus"), gateway.admin_port).ready()
    try:
        for query in ("rate(admission_gateway_reviews_total[1m])", "admission_gateway:objective_ratio"):
            asyncio.run(until(lambda query=query: started.get("query", query=query)["result"]))
        yield started
    finally:
        started.stop()


def _about(prometheus):
    """What the dashboards' variables select: this gateway, and its policy and worker with the most calls."""
    (target,) = prometheus.get("targets")["activeTargets"]
    found = {"job": JOB, "instance": target["labels"]["instance"]}
    for label in ("policy", "worker"):
        most = f"topk(1, sum by ({label}) (admission_gateway_{label}_call_duration_seconds_count))"
        found[label] = prometheus.get("query", query=most)["result"][0]["metric"][label]
    return found


def test_no_alert_of_a_healthy_gateway_fires(prometheus):
    """The rules are loaded and evaluated without an error."""
    rules = [rule for each in prometheus.get("rules")["groups"] for rule in each["rules"]]
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert [rule["name"] for rule in rules if rule.get("state") == "firing"] == []


@pytest.mark.parametrize("uid", dashboards())
def test_the_queries_of_a_dashboard_are_answered(prometheus, uid):
    """Each is understood, and most have an answer; those for traces have the trace of the reviews."""
    values = _about(prometheus)
    asked = [filled(each, values) for each in expressions(dashboards()[uid])]
    answers = {each: prometheus.get("query", query=each)["result"] for each in asked}
    assert sum(bool(answer) for answer in answers.values()) > len(answers) // 2, answers
    targets = [target for panel in dashboards()[uid]["panels"] for target in panel["targets"]]
    traced = [filled(target["expr"], values) for target in targets if target.get("exemplar")]
    found = [prometheus.get("query_exemplars", query=each, start=0, end=4e9) for each in traced]
    assert traced
    assert {one["labels"]["trace_id"] for each in found for series in each for one in series["exemplars"]} == {TRACE}
    assert all(found)
