"""Grafana's dashboards as a reader of the files sees them: panels, queries, variables."""

import json
import re

from tests.deploy.chart import CHART

VALUES = {
    "__rate_interval": "1m",
    "__range": "5m",
    "job": ".*",
    "instance": ".*",
    "policy": "team-a/labels",
    "worker": "labels",
}
"""What Grafana puts in the place of variables."""

FILES = sorted((CHART / "dashboards").glob("*.json"))


def read(path):
    """A dashboard; its rows are left out of ``panels``."""
    dashboard = json.loads(path.read_text())
    dashboard["rows"] = [each for each in dashboard["panels"] if each["type"] == "row"]
    dashboard["panels"] = [each for each in dashboard["panels"] if each["type"] != "row"]
    return dashboard


def dashboards():
    """All dashboards by their uid."""
    return {made["uid"]: made for made in map(read, FILES)}


def expressions(dashboard):
    """All queries of a dashboard, with its variables."""
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return found + [each["expr"] for each in dashboard["annotations"]["list"]]


def filled(expression, values=None):
    """A query with values for its variables."""
    return re.sub(r"\$\{?(\w+)\}?", lambda match: (VALUES | (values or {}))[match[1]], expression)
