"""deploy/prometheus: rules that ask for what the broker tells, fire when they should and are silent else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deploy.prometheus import alerts
from deploy.prometheus.alerts import ALERTS
from kbroker.protocol.errors import ErrorCode
from tests.deploy.promtool import Case, check, needs_promtool, promtool
from tests.deploy.queries import problems

AT = 'instance="a:8080"'
UP = f'up{{job="kbroker",{AT}}}'
BUCKET = f'kbroker_request_seconds_bucket{{{AT},api="Produce",le="%s"}}'
FLUSH = f'kbroker_flush_seconds_bucket{{{AT},le="%s"}}'
PRODUCED = "kafka_server_brokertopicmetrics_%sproducerequests_total"
GROUP = f'{{{AT},consumergroup="g",topic="t"}}'
OFFSET = f'kafka_topic_partition_current_offset{{{AT},topic="t",partition="0"}}'
DEAD = "kafka_server_sharegroupmetrics_deadletterqueue%s_total"
STARTED = f'process_start_time_seconds{{job="kbroker",{AT}}}'


def errors(name: str) -> str:
    return f'kbroker_request_errors_total{{{AT},api="Produce",error="{name}"}}'


def disk(free: str) -> dict[str, str]:
    return {f"kbroker_disk_total_bytes{{{AT}}}": "1000x600", f"kbroker_disk_usable_bytes{{{AT}}}": free}


def group(lag: str, offset: str, members: str) -> dict[str, str]:
    return {
        f"kafka_consumergroup_lag_sum{GROUP}": lag,
        f"kafka_consumergroup_current_offset_sum{GROUP}": offset,
        f'kafka_consumergroup_members{{{AT},consumergroup="g"}}': members,
    }


CASES = (
    Case("KbrokerDown", {UP: "1x5 0x10"}, 10, 1),
    Case("KbrokerDown", {UP: "1x20"}, 10, 0),
    Case("KbrokerDown", {}, 10, 1),
    Case("KbrokerRestarts", {STARTED: "1 1 2 2 3 3 4x10"}, 12, 1),
    Case("KbrokerRestarts", {STARTED: "1x6 2x10"}, 12, 0),
    Case("KbrokerDiskLow", disk("90x20"), 10, 1),
    Case("KbrokerDiskLow", disk("110x20"), 10, 0),
    Case("KbrokerDiskFull", disk("20x20"), 10, 1),
    Case("KbrokerDiskFull", disk("90x20"), 10, 0),
    Case("KbrokerDiskFillsUp", disk("490-0.5x500"), 500, 1),
    Case("KbrokerDiskFillsUp", disk("490-0.01x500"), 500, 0),
    Case("KbrokerDiskFillsUp", disk("1000-0.8x500"), 500, 0),
    Case(
        "KbrokerGroupBehind",
        {f'kbroker_consumergroup_lag_seconds{{{AT},consumergroup="g",topic="t",partition="0"}}': "0+60x30"},
        30,
        1,
    ),
    Case(
        "KbrokerGroupBehind",
        {f'kbroker_consumergroup_lag_seconds{{{AT},consumergroup="g",topic="t",partition="0"}}': "290x30"},
        30,
        0,
    ),
    Case("KbrokerGroupStands", group("5+1x60", "100x60", "1x60"), 50, 1),
    Case("KbrokerGroupStands", group("5+1x60", "100+1x60", "1x60"), 50, 0),
    Case("KbrokerGroupStands", group("5+1x60", "100x60", "0x60"), 50, 0),
    Case("KbrokerGroupStands", group("0x60", "100x60", "1x60"), 50, 0),
    Case("KbrokerNoNewRecords", {OFFSET: "0+5x1500 7500x200"}, 1600, 1),
    Case("KbrokerNoNewRecords", {OFFSET: "0+5x1700"}, 1600, 0),
    Case("KbrokerNoNewRecords", {OFFSET: "7x1700"}, 1600, 0),
    Case("KbrokerErrors", {errors("KAFKA_STORAGE_ERROR"): "0+1x20"}, 15, 1),
    Case("KbrokerErrors", {errors("KAFKA_STORAGE_ERROR"): "7x20"}, 15, 0),
    Case("KbrokerErrors", {errors("UNKNOWN_TOPIC_OR_PARTITION"): "0+1x20"}, 15, 0),
    Case(
        "KbrokerProduceRefused",
        {f"{PRODUCED % 'failed'}{{{AT}}}": "0+10x40", f"{PRODUCED % 'total'}{{{AT}}}": "0+90x40"},
        30,
        1,
    ),
    Case(
        "KbrokerProduceRefused",
        {
            f"{PRODUCED % 'failed'}{{{AT}}}": "0+1x40",
            f"{PRODUCED % 'total'}{{{AT}}}": "0+90x40",
            f'{PRODUCED % "total"}{{{AT},topic="t"}}': "0+1x40",
        },
        30,
        0,
    ),
    Case(
        "KbrokerSlow",
        {BUCKET % "0.5": "0+90x40", BUCKET % "1.0": "0+100x40", BUCKET % "+Inf": "0+100x40"},
        30,
        1,
    ),
    Case(
        "KbrokerSlow",
        {BUCKET % "0.5": "0+100x40", BUCKET % "1.0": "0+100x40", BUCKET % "+Inf": "0+100x40"},
        30,
        0,
    ),
    Case("KbrokerSlow", {BUCKET % "0.5": "7x40", BUCKET % "1.0": "9x40", BUCKET % "+Inf": "9x40"}, 30, 0),
    Case(
        "KbrokerUnderLoad",
        {f"kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{{{AT}}}": "0.05x40"},
        30,
        1,
    ),
    Case(
        "KbrokerUnderLoad",
        {f"kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{{{AT}}}": "0.4x40"},
        30,
        0,
    ),
    Case(
        "KbrokerFlushSlow",
        {FLUSH % "1.0": "0+5x40", FLUSH % "2.5": "0+9x40", FLUSH % "+Inf": "0+9x40"},
        30,
        1,
    ),
    Case(
        "KbrokerFlushSlow",
        {FLUSH % "1.0": "0+9x40", FLUSH % "2.5": "0+9x40", FLUSH % "+Inf": "0+9x40"},
        30,
        0,
    ),
    Case("KbrokerMemoryForClients", {f"kbroker_budget_waiting{{{AT}}}": "3x30"}, 20, 1),
    Case("KbrokerMemoryForClients", {f"kbroker_budget_waiting{{{AT}}}": "3 0 3 0 3 0 3x2 0 3 0x20"}, 20, 0),
    Case(
        "KbrokerFilesRunOut",
        {
            f'process_open_fds{{job="kbroker",{AT}}}': "95x20",
            f'process_max_fds{{job="kbroker",{AT}}}': "100x20",
        },
        15,
        1,
    ),
    Case(
        "KbrokerFilesRunOut",
        {f'process_open_fds{{job="other",{AT}}}': "95x20", f'process_max_fds{{job="other",{AT}}}': "100x20"},
        15,
        0,
    ),
    Case(
        "KbrokerConnectionsRefused",
        {f'kbroker_connections_refused_total{{{AT},listener="P"}}': "0+1x20"},
        15,
        1,
    ),
    Case(
        "KbrokerConnectionsRefused",
        {f'kbroker_connections_refused_total{{{AT},listener="P"}}': "9x20"},
        15,
        0,
    ),
    Case("KbrokerTransactionHangs", {f"kbroker_oldest_transaction_seconds{{{AT}}}": "1000+60x20"}, 15, 1),
    Case("KbrokerTransactionHangs", {f"kbroker_oldest_transaction_seconds{{{AT}}}": "0+60x15 0x5"}, 15, 0),
    Case("KbrokerDeadLetters", {f'{DEAD % "recordcount"}{{{AT},group="g"}}': "0x5 3x9"}, 10, 1),
    Case("KbrokerDeadLetters", {f'{DEAD % "recordcount"}{{{AT},group="g"}}': "3x30"}, 20, 0),
    Case("KbrokerDeadLettersFail", {f'{DEAD % "failedproducerequests"}{{{AT},group="g"}}': "0x5 3x9"}, 10, 1),
    Case("KbrokerDeadLettersFail", {f'{DEAD % "failedproducerequests"}{{{AT},group="g"}}': "0x30"}, 20, 0),
    Case("KbrokerMetricsLeftOut", {f'kbroker_metrics_left_out{{{AT},metric="m"}}': "5x40"}, 30, 1),
    Case("KbrokerMetricsLeftOut", {f'kbroker_metrics_left_out{{{AT},metric="m"}}': "0x40"}, 30, 0),
)


def test_the_files_are_up_to_date() -> None:
    assert alerts.RULES.read_text() == alerts.rules(), "run python -m deploy.prometheus.alerts"
    assert alerts.PAGE.read_text() == alerts.page(), "run python -m deploy.prometheus.alerts"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_asks_for_metrics_that_there_are(alert: alerts.Alert) -> None:
    assert not problems(alert.expr)


def test_errors_that_alerts_name_are_errors_of_kafka() -> None:
    (expr,) = (alert.expr for alert in ALERTS if alert.name == "KbrokerErrors")
    (names,) = re.findall(r'error=~"([^"]*)"', expr)
    assert set(names.split("|")) <= {code.name for code in ErrorCode}


def test_links_of_the_run_book_lead_somewhere() -> None:
    docs = alerts.PAGE.parent
    for file, heading in re.findall(r"\]\(([\w-]+\.md)(?:#([\w-]+))?\)", alerts.PAGE.read_text()):
        text = (docs / file).read_text()
        headings = {
            re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        }
        assert not heading or heading in headings, f"{file}#{heading}"


def test_every_alert_is_linked_to_where_the_run_book_is_read() -> None:
    text = alerts.rules("https://wiki.example/alerts")
    for alert in ALERTS:
        assert f"runbook_url: https://wiki.example/alerts#{alert.name.lower()}\n" in text
        assert f"\n## {alert.name}\n" in alerts.PAGE.read_text()


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    for alert in ALERTS:
        assert {bool(case.firing) for case in CASES if case.alert == alert.name} == {True, False}, alert.name


@needs_promtool
def test_prometheus_takes_the_rules_and_the_configuration() -> None:
    directory = alerts.RULES.parent
    promtool("check", "rules", alerts.RULES)
    promtool("check", "config", directory / "prometheus.yml")


@needs_promtool
def test_alerts_fire_when_they_should_and_not_else(tmp_path: Path) -> None:
    check(alerts.RULES, CASES, tmp_path)
