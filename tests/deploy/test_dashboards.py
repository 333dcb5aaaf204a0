"""Grafana's dashboards: every query can be read, every panel says what it shows, and every link leads somewhere."""

import itertools
import re

import pytest
import yaml

from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import REVIEW_SECONDS
from tests.deploy.chart import NAME, ROOT, template
from tests.deploy.dashboards import FILES, VALUES, dashboards, expressions, filled, read
from tests.deploy.promtool import promtool

PROVISIONING = ROOT / "deploy/grafana/provisioning"

UNITS = {"bytes", "none", "ops", "percentunit", "reqps", "s", "short"}
"""Of Grafana's units, those that are used."""


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def dashboard(request):
    return read(request.param)


def test_every_query_can_be_read(tmp_path):
    """Prometheus parses each query."""
    path = tmp_path / "queries.yaml"
    asked = itertools.chain.from_iterable(expressions(each) for each in dashboards().values())
    rules = [{"record": f"query:{number}", "expr": filled(each)} for number, each in enumerate(asked)]
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    promtool("check", "rules", str(path))


def test_every_panel_says_what_it_shows(dashboard):
    """A title, a description, a unit, and the data source that the reader chooses."""
    for panel in dashboard["panels"]:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert all(each == {"type": "prometheus", "uid": "${prometheus}"} for each in sources)


def test_no_panel_lies_over_another(dashboard):
    """Panels have numbers of their own, and places of their own within the width."""
    everything = [*dashboard["rows"], *dashboard["panels"]]
    assert len({each["id"] for each in everything}) == len(everything)
    taken = set()
    for place in (each["gridPos"] for each in everything):
        cells = set(
            itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"]))
        )
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells


def test_every_variable_exists(dashboard):
    """A query uses Grafana's own variables, and those of its dashboard."""
    known = {each["name"] for each in dashboard["templating"]["list"]}
    asked = {name for each in expressions(dashboard) for name in re.findall(r"\$\{?(\w+)", each)}
    assert asked <= {"__rate_interval", "__range", *known}
    assert known - {"prometheus"} <= VALUES.keys()


def test_every_link_leads_to_a_dashboard():
    """Links name dashboards that exist, with variables that these have."""
    found = dashboards()
    links = re.findall(r'"/d/([\w-]+)\?([^"]*)"', "".join(path.read_text() for path in FILES))
    assert {uid for uid, _ in links} == {f"{NAME}-policy", f"{NAME}-worker"}
    for uid, query in links:
        known = {each["name"] for each in found[uid]["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", query)) | set(re.findall(r"\$\{(\w+):queryparam\}", query)) <= known


def test_a_histogram_leads_to_traces(dashboard):
    """Each dashboard shows examples of a histogram, and the data source has the label that names their trace."""
    exemplars = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"] if t.get("exemplar")]
    assert exemplars
    assert all("_duration_seconds_bucket{" in each for each in exemplars)
    sources = yaml.safe_load((PROVISIONING / "datasources/datasources.yaml").read_text())["datasources"]
    (destination,) = sources[0]["jsonData"]["exemplarTraceIdDestinations"]
    assert destination["datasourceUid"] in {each["uid"] for each in sources}
    metrics = Metrics()
    metrics.observe(REVIEW_SECONDS, 0.1, "mutating", trace_id="0af7651916cd43dd8448eb211c80319c")
    assert (
        f'{destination["name"]}="0af7651916cd43dd8448eb211c80319c"' in metrics.exposition(openmetrics=True)[1].decode()
    )


def test_the_sidecar_finds_the_dashboards():
    """Each file of the chart is a ConfigMap with the label by which Grafana's sidecar finds it."""
    text = template("--set", "monitoring.dashboards.enabled=true", "--show-only", "templates/monitoring.yaml")
    maps = [each for each in yaml.safe_load_all(text) if each["kind"] == "ConfigMap"]
    assert {each["metadata"]["labels"]["grafana_dashboard"] for each in maps} == {"1"}
    data = {name: content for each in maps for name, content in each["data"].items()}
    assert data == {f"{NAME}-{path.name}": path.read_text() for path in FILES}
