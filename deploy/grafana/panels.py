"""How a dashboard of Grafana is declared here, and the JSON that is made of it.

In queries `$AT` stands for what chooses the brokers, `$RATE` for the range of a rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

STAT, TIME, TABLE = "stat", "timeseries", "table"
_WIDTHS = {STAT: 3, TIME: 8, TABLE: 24}
_HEIGHTS = {STAT: 4, TIME: 8, TABLE: 9}
_GRID = 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Query(NamedTuple):
    expr: str
    legend: str = ""


class Panel(NamedTuple):
    title: str
    queries: Sequence[Query]
    unit: str = "short"
    """By Grafana's names: Bps, bytes, s, percentunit, reqps, …"""
    kind: str = TIME
    doc: str = ""
    most: float | None = None
    alarm_above: float | None = None
    alarm_below: float | None = None


class Variable(NamedTuple):
    name: str
    query: str


class Dashboard(NamedTuple):
    uid: str
    title: str
    panels: Sequence[Panel]
    variables: Sequence[Variable] = ()


def panel(title: str, *queries: str | tuple[str, str], **options: Any) -> Panel:
    found = [Query(each) if isinstance(each, str) else Query(*each) for each in queries]
    return Panel(title, found, **options)


def stat(title: str, expr: str, unit: str = "short", **options: Any) -> Panel:
    return Panel(title, [Query(expr)], unit, STAT, **options)


def expanded(expr: str) -> str:
    return expr.replace("$AT", 'instance=~"$instance"').replace("$RATE", "$__rate_interval")


def document(dashboard: Dashboard) -> dict[str, Any]:
    """What Grafana imports."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["kbroker"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "links": [
            {
                "title": "kbroker",
                "type": "dashboards",
                "tags": ["kbroker"],
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "templating": {"list": [_sources(), *map(_variable, [_INSTANCE, *dashboard.variables])]},
        "annotations": {"list": [_restarts()]},
        "panels": list(_placed(dashboard.panels)),
    }


_INSTANCE = Variable("instance", "label_values(kbroker_build_info, instance)")


def _sources() -> dict[str, Any]:
    return {"name": "datasource", "label": "source", "type": "datasource", "query": "prometheus"}


def _variable(variable: Variable) -> dict[str, Any]:
    query = expanded(variable.query)
    return {
        "name": variable.name,
        "type": "query",
        "datasource": _SOURCE,
        "definition": query,
        "query": {"query": query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _restarts() -> dict[str, Any]:
    return {
        "name": "starts",
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": "orange",
        "expr": expanded('changes(process_start_time_seconds{job="kbroker",$AT}[1m]) > 0'),
        "titleFormat": "started",
    }


def _placed(panels: Iterable[Panel]) -> Iterable[dict[str, Any]]:
    """From left to right, then in the next row."""
    x = y = row_height = 0
    for number, each in enumerate(panels, 1):
        width, height = _WIDTHS[each.kind], _HEIGHTS[each.kind]
        if x + width > _GRID or (row_height and height != row_height):
            x, y, row_height = 0, y + row_height, 0
        yield _panel(number, each, {"x": x, "y": y, "w": width, "h": height})
        x, row_height = x + width, max(row_height, height)


def _panel(number: int, declared: Panel, place: dict[str, int]) -> dict[str, Any]:
    at_once = declared.kind != TIME
    return {
        "id": number,
        "type": declared.kind,
        "title": declared.title,
        "description": declared.doc,
        "gridPos": place,
        "datasource": _SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + position),
                "datasource": _SOURCE,
                "expr": expanded(query.expr),
                "legendFormat": query.legend or "__auto",
                "instant": at_once,
                "range": not at_once,
                "format": "table" if declared.kind == TABLE else "time_series",
            }
            for position, query in enumerate(declared.queries)
        ],
        "fieldConfig": {"defaults": _defaults(declared), "overrides": []},
        "options": _OPTIONS[declared.kind],
        **({"transformations": _TABLE} if declared.kind == TABLE else {}),
    }


def _defaults(declared: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if declared.alarm_above is not None:
        steps.append({"color": "red", "value": declared.alarm_above})
    if declared.alarm_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": declared.alarm_below}]
    found: dict[str, Any] = {
        "unit": declared.unit,
        "min": 0,
        "thresholds": {"mode": "absolute", "steps": steps},
    }
    if declared.most is not None:
        found["max"] = declared.most
    if declared.kind == TIME:
        found["custom"] = {"fillOpacity": 10, "showPoints": "never", "lineWidth": 1}
    return found


_OPTIONS: dict[str, dict[str, Any]] = {
    STAT: {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "none"},
    TIME: {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    TABLE: {"showHeader": True},
}
_TABLE = [
    {"id": "organize", "options": {"excludeByName": {"Time": True, "__name__": True, "job": True}}},
]
