"""Panels of Grafana's dashboards, as the JSON that it imports."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from deploy.generator.promql import heat, quantile
from gateway.telemetry.events import Metric

Json = dict[str, Any]
Thresholds = Sequence[tuple[float | None, str]]
"""Colours by the value from which on they hold; None is the lowest."""

PROMETHEUS: Final = {"type": "prometheus", "uid": "${prometheus}"}
COLOURS: Final = {
    "allowed": "green",
    "allow": "green",
    "denied": "orange",
    "deny": "orange",
    "failed": "red",
    "failure": "red",
}
"""Of outcomes and verdicts, the same in all panels."""


class Query(Struct, frozen=True, kw_only=True):
    """One query of a panel. ``exemplar``: show examples, which lead to their traces."""

    expr: str
    legend: str = ""
    exemplar: bool = False


class Panel(Struct, frozen=True, kw_only=True):
    """A panel: what it shows, in which unit, and for whom it matters.

    ``columns`` are the headings of a table's queries, with their units. ``link`` is the label that names the policy or
    the worker of a series, and leads to its dashboard.
    """

    kind: str
    title: str
    text: str
    unit: str
    queries: Sequence[Query]
    width: int = 8
    height: int = 8
    stacked: bool = False
    thresholds: Thresholds = ()
    columns: Sequence[tuple[str, str]] = ()
    link: str = ""


def stat(title: str, unit: str, expr: str, thresholds: Thresholds, text: str, *, width: int = 4) -> Panel:
    """One number, coloured by its thresholds."""
    queries = [Query(expr=expr)]
    return Panel(
        kind="stat", title=title, text=text, unit=unit, queries=queries, width=width, height=4, thresholds=thresholds
    )


def graph(
    title: str, unit: str, queries: Mapping[str, str], text: str, *, stacked: bool = False, link: str = ""
) -> Panel:
    """Series over time; the queries by their legends."""
    asked = [Query(expr=expr, legend=legend) for legend, expr in queries.items()]
    return Panel(kind="timeseries", title=title, text=text, unit=unit, queries=asked, stacked=stacked, link=link)


def table(title: str, link: str, columns: Mapping[str, tuple[str, str]], text: str) -> Panel:
    """A line for each value of a label, which leads to its dashboard: units and queries by their headings."""
    queries = [Query(expr=expr) for _, expr in columns.values()]
    units = [(heading, unit) for heading, (unit, _) in columns.items()]
    return Panel(
        kind="table", title=title, text=text, unit="short", queries=queries, width=24, columns=units, link=link
    )


def durations(title: str, text: str, metric: Metric, *by: str, **match: str) -> Panel:
    """Median and 99th percentile of a histogram, with examples that lead to their traces."""
    of = "".join(f" {{{{{label}}}}}" for label in by)
    queries = [
        Query(expr=quantile(part, metric, *by, **match), legend=f"{name}{of}", exemplar=True)
        for name, part in (("p50", 0.5), ("p99", 0.99))
    ]
    return Panel(kind="timeseries", title=title, text=text, unit="s", queries=queries)


def heat_map(title: str, text: str, metric: Metric, **match: str) -> Panel:
    """The buckets of a histogram over time, with examples that lead to their traces."""
    queries = [Query(expr=heat(metric, **match), legend="{{le}}", exemplar=True)]
    return Panel(kind="heatmap", title=title, text=text, unit="s", queries=queries)


def _options(panel: Panel) -> Json:
    reduce = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    legend = {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["mean", "max"]}
    options: dict[str, Json] = {
        "timeseries": {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}},
        "stat": {"reduceOptions": reduce, "colorMode": "background", "graphMode": "area", "textMode": "auto"},
        "table": {"showHeader": True, "cellHeight": "sm", "footer": {"show": False}},
        "heatmap": {
            "calculate": False,
            "cellGap": 1,
            "color": {"mode": "scheme", "scheme": "Oranges", "exponent": 0.5, "steps": 64},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"mode": "single", "yHistogram": True},
            "yAxis": {"axisPlacement": "left", "unit": panel.unit},
        },
    }
    return options[panel.kind]


def _defaults(panel: Panel) -> Json:
    found: Json = {"unit": panel.unit}
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
        custom = {"fillOpacity": 25 if panel.stacked else 8, "showPoints": "never", "stacking": stacking}
        found |= {"min": 0, "custom": custom}
    if panel.thresholds:
        steps = [{"value": value, "color": colour} for value, colour in panel.thresholds]
        found |= {"thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}
    if panel.link and panel.kind != "table":
        found["links"] = [_link(panel.link, "__field.labels")]
    return found


def uid(subject: str) -> str:
    """The identity of a dashboard, by which links find it."""
    return f"admission-gateway-{subject}"


def _link(subject: str, labels: str) -> Json:
    """A link from a series or a cell to the dashboard of the policy or worker that it is about."""
    kept = "${__url_time_range}&${prometheus:queryparam}&${job:queryparam}&${instance:queryparam}"
    return {
        "title": f"Dashboard of this {subject}",
        "url": f"/d/{uid(subject)}?var-{subject}=${{{labels}.{subject}}}&{kept}",
    }


def _overrides(panel: Panel) -> list[Json]:
    found: list[Json] = [
        {
            "matcher": {"id": "byRegexp", "options": f"/(^| ){word}$/"},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for word, colour in COLOURS.items()
        if panel.stacked
    ]
    found += [
        {"matcher": {"id": "byName", "options": heading}, "properties": [{"id": "unit", "value": unit}]}
        for heading, unit in panel.columns
    ]
    if panel.link and panel.kind == "table":
        link = _link(panel.link, "__data.fields")
        found.append(
            {"matcher": {"id": "byName", "options": panel.link}, "properties": [{"id": "links", "value": [link]}]}
        )
    return found


def _transformations(panel: Panel) -> list[Json]:
    """The results of a table's queries side by side."""
    renamed = {f"Value #{_ref(place)}": heading for place, (heading, _) in enumerate(panel.columns)}
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": renamed}},
    ]


def _ref(place: int) -> str:
    return "ABCDEFGH"[place]


def rendered(panel: Panel, number: int, x: int, y: int) -> Json:
    """The panel's JSON, with its number and place in the dashboard."""
    instant = panel.kind in {"stat", "table"}
    format_ = {"table": "table", "heatmap": "heatmap"}.get(panel.kind, "time_series")
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": PROMETHEUS,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _overrides(panel)},
        "options": _options(panel),
        **({"transformations": _transformations(panel)} if panel.kind == "table" else {}),
        "targets": [
            {
                "refId": _ref(place),
                "datasource": PROMETHEUS,
                "expr": query.expr,
                "legendFormat": query.legend,
                "format": format_,
                "range": not instant,
                "instant": instant,
                **({"exemplar": True} if query.exemplar else {}),
            }
            for place, query in enumerate(panel.queries)
        ],
    }
