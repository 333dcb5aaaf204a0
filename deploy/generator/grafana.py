"""Dashboards of Grafana, as the JSON that it imports."""

from collections.abc import Iterator, Sequence
from json import dumps
from typing import Final

from msgspec import Struct

from deploy.generator.panels import PROMETHEUS, Json, Panel, rendered, uid
from deploy.generator.promql import label_values, select
from gateway.telemetry.events import Metric
from gateway.telemetry.table import CONFIGURATION_LOADED

_COLUMNS: Final = 24
_SCHEMA: Final = 39
"""Grafana's version of this format; it reads older ones, too."""


class Row(Struct, frozen=True, kw_only=True):
    """Panels under a heading, from left to right."""

    title: str
    panels: Sequence[Panel]


class Dashboard(Struct, frozen=True, kw_only=True):
    """A dashboard of a ``subject``: the whole fleet; or one value of the label of that name, which ``variable`` has."""

    subject: str
    title: str
    text: str
    rows: Sequence[Row]
    variable: Metric | None = None

    def json(self) -> str:
        """The JSON, each panel in one line, so that a change of one is a difference in one."""
        panels = list(self._panels())
        head = dumps(self._head(), indent=1).removesuffix("\n}")
        lines = ",\n  ".join(dumps(panel) for panel in panels)
        return f'{head},\n "panels": [\n  {lines}\n ]\n}}\n'

    def _head(self) -> Json:
        changed = f"changes({select(CONFIGURATION_LOADED)}[1m]) > 0"
        return {
            "uid": uid(self.subject),
            "title": self.title,
            "description": self.text,
            "tags": ["admission-gateway"],
            "schemaVersion": _SCHEMA,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"},
            "links": [
                {
                    "title": "Admission gateway",
                    "type": "dashboards",
                    "tags": ["admission-gateway"],
                    "asDropdown": True,
                    "includeVars": True,
                    "keepTime": True,
                }
            ],
            "annotations": {
                "list": [
                    {
                        "name": "Configuration",
                        "datasource": PROMETHEUS,
                        "enable": True,
                        "iconColor": "blue",
                        "expr": changed,
                        "titleFormat": "A configuration was loaded",
                        "textFormat": "{{instance}}",
                    }
                ]
            },
            "templating": {"list": list(self._variables())},
        }

    def _variables(self) -> Iterator[Json]:
        yield {"name": "prometheus", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
        yield _variable("job", label_values(CONFIGURATION_LOADED, "job"), many=True, label="Gateway")
        chosen = label_values(CONFIGURATION_LOADED, "instance", job="$job")
        yield _variable("instance", chosen, many=True, label="Replica")
        if self.variable is not None:
            chosen = label_values(self.variable, self.subject, job="$job")
            yield _variable(self.subject, chosen, many=False, label=self.subject.capitalize())

    def _panels(self) -> Iterator[Json]:
        number = y = 0
        for row in self.rows:
            number += 1
            place = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
            yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
            x, y, height = 0, y + 1, 0
            for panel in row.panels:
                if x + panel.width > _COLUMNS:
                    x, y, height = 0, y + height, 0
                number += 1
                yield rendered(panel, number, x, y)
                x, height = x + panel.width, max(height, panel.height)
            y += height


def _variable(name: str, query: str, *, many: bool, label: str) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": PROMETHEUS,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": many,
        "includeAll": many,
        **({"allValue": ".*", "current": {"text": "All", "value": "$__all"}} if many else {}),
    }
