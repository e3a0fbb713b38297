"""deploy/grafana: dashboards that ask for what the broker tells, and show something."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.grafana import dashboards
from deploy.grafana.dashboards import DASHBOARDS
from deploy.grafana.panels import Dashboard, document
from deploy.prometheus.alerts import ALERTS
from tests.deploy.busy_broker import BusyBroker, busy_broker
from tests.deploy.promtool import needs_promtool, promtool
from tests.deploy.queries import metrics, problems
from tests.support.http_client import HttpClient
from tests.support.metrics import scrape
from tests.support.server_process import ServerProcess, eventually

DEPLOY = Path(__file__).parents[2] / "deploy"
every_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)

RARE = {"kbroker_metrics_left_out"}
"""What a broker tells only when something is wrong with it."""
OF_PROMETHEUS = {"up", "ALERTS"}


def queries(dashboard: Dashboard) -> list[str]:
    made = document(dashboard)
    found = [target["expr"] for panel in made["panels"] for target in panel["targets"]]
    return found + [each["expr"] for each in made["annotations"]["list"]]


def variables(dashboard: Dashboard) -> dict[str, str]:
    """Those that ask the broker: name → query."""
    listed = document(dashboard)["templating"]["list"]
    return {each["name"]: each["query"]["query"] for each in listed if each["type"] == "query"}


def for_prometheus(query: str, dashboard: Dashboard) -> str:
    """As Grafana sends it, for all brokers, topics and groups."""
    text = query.replace("$__rate_interval", "1m")
    for name in variables(dashboard):
        text = text.replace(f"${name}", ".*")
    assert "$" not in text, text
    return text


def test_the_files_are_up_to_date() -> None:
    there = {path.name: path.read_text() for path in dashboards.TARGET.glob("*.json")}
    assert there == dashboards.files(), "run python -m deploy.grafana.dashboards"


@every_dashboard
def test_a_dashboard_asks_for_metrics_that_there_are(dashboard: Dashboard) -> None:
    for query in [*queries(dashboard), *variables(dashboard).values()]:
        if "ALERTS" not in query:
            assert not problems(query)


@every_dashboard
def test_legends_name_labels_that_are_left(dashboard: Dashboard) -> None:
    for panel in dashboard.panels:
        for query in panel.queries:
            grouped = re.findall(r"by \(([^)]*)\)", query.expr)
            for label in re.findall(r"\{\{(\w+)\}\}", query.legend):
                assert not grouped or label in grouped[0], f"{panel.title}: {label}"


@every_dashboard
def test_panels_do_not_lie_above_each_other(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in document(dashboard)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (place["x"] + column, place["y"] + row)
            for column in range(place["w"])
            for row in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_what_is_provisioned_is_where_compose_puts_it() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    mounted = {}
    for service in ("prometheus", "grafana"):
        for volume in compose["services"][service]["volumes"]:
            source, target, *_ = volume.split(":")
            if source.startswith("."):
                assert (DEPLOY / source).exists(), source
                mounted[target] = source
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/kbroker.yml").read_text())
    assert mounted[provider["providers"][0]["options"]["path"]] == "./grafana/dashboards"
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yml").read_text())
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    scraped = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"][0]
    assert scraped["job_name"] == "kbroker"
    assert scraped["static_configs"] == [{"targets": ["kbroker:8080"]}]
    assert "127.0.0.1:8080:8080" in compose["services"]["kbroker"]["ports"]


@needs_promtool
def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    records = [
        {"record": "some:query", "expr": for_prometheus(query, dashboard), "labels": {"number": str(number)}}
        for dashboard in DASHBOARDS
        for number, query in enumerate(queries(dashboard))
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": records}]}))
    promtool("check", "rules", "--lint=none", file)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BusyBroker]:
    with busy_broker(tmp_path_factory.mktemp("data")) as broker:
        yield broker


def test_a_scrape_of_a_busy_broker_has_all_that_dashboards_and_alerts_ask_for(busy: BusyBroker) -> None:
    asked = {
        name
        for query in [
            *(alert.expr for alert in ALERTS),
            *(each for board in DASHBOARDS for each in queries(board)),
        ]
        for name, _ in metrics(query)
    }
    missing: set[str] = set()

    def all_there() -> bool:
        missing.clear()
        missing.update(asked - RARE - OF_PROMETHEUS - {name for name, _ in scrape(client).found})
        return not missing

    with HttpClient(busy.server.url) as client:
        try:
            eventually(all_there)  # dead letters are written a moment later
        except AssertionError:
            raise AssertionError(f"there is no {missing}") from None


class Prometheus:
    """The real one, which scrapes a broker every second."""

    def __init__(self, server: ServerProcess, directory: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(DEPLOY / "prometheus/alerts.yml")]
        config["scrape_configs"][0]["static_configs"] = [
            {"targets": [urllib.parse.urlsplit(server.url).netloc]}
        ]
        (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
        with (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={directory / 'prometheus.yml'}",
                    f"--storage.tsdb.path={directory / 'tsdb'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdout=log,
                stderr=log,
            )

    def get(self, path: str, **query: str) -> Any:
        client = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            client.request("GET", f"{path}?{urllib.parse.urlencode(query)}")
            return json.loads(client.getresponse().read())
        except (OSError, ValueError):
            return {"status": "unreachable"}
        finally:
            client.close()

    def found(self, query: str) -> list[Any]:
        answer = self.get("/api/v1/query", query=query)
        assert answer["status"] == "success", (query, answer)
        return list(answer["data"]["result"])

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("prometheus") is None,
    reason="prometheus is not installed (apt install prometheus): no query is answered by it here",
)
def test_a_real_prometheus_has_an_answer_for_every_panel(busy: BusyBroker, tmp_path: Path) -> None:
    prometheus = Prometheus(busy.server, tmp_path)
    try:
        counted = "count_over_time(kbroker_build_info[1m])"
        eventually(lambda: prometheus.get("/api/v1/query", query="up").get("status") == "success", 60)
        eventually(
            lambda: [each for each in prometheus.found(counted) if int(each["value"][1]) > 2] != [], 60
        )
        busy.work()

        def silent() -> list[str]:
            return [
                f"{dashboard.title}: {query}"
                for dashboard in DASHBOARDS
                for query in queries(dashboard)
                if not {name for name, _ in metrics(query)} & RARE
                and ") > 0" not in query
                and not prometheus.found(for_prometheus(query, dashboard))
            ]

        left: list[str] = []

        def all_answered() -> bool:
            left[:] = silent()
            return not left

        try:
            eventually(all_answered, 60)
        except AssertionError:
            raise AssertionError(f"no answer for {left}") from None
        rules = prometheus.get("/api/v1/rules")["data"]["groups"][0]["rules"]
        assert {rule["name"] for rule in rules} == {alert.name for alert in ALERTS}
        assert not [rule for rule in rules if rule["health"] != "ok" or rule.get("lastError")]
    finally:
        prometheus.close()
