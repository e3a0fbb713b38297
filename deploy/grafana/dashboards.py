"""The dashboards, once: `python -m deploy.grafana.dashboards` writes dashboards/*.json."""

from __future__ import annotations

import json
from pathlib import Path

from deploy.grafana.panels import TABLE, Dashboard, Panel, Variable, document, panel, stat

TARGET = Path(__file__).with_name("dashboards")

_IN = "kafka_server_brokertopicmetrics_"
_IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
_SHARE_DEAD = "kafka_server_sharegroupmetrics_deadletterqueue"
_REQUESTS = 'api=~"Produce|Fetch|OffsetCommit"'


def _quantile(of: str, series: str, by: str, matching: str = "") -> str:
    chosen = f"{{$AT{',' if matching else ''}{matching}}}"
    grouped = f"{by}, le" if by else "le"
    return f"histogram_quantile({of}, sum by ({grouped}) (rate({series}_bucket{chosen}[$RATE])))"


def _by_topic(title: str, name: str, unit: str) -> Panel:
    return panel(
        title,
        (
            f'topk(15, sum by (topic) (rate({_IN}{name}_total{{$AT,topic=~"$topic",topic!=""}}[$RATE])))',
            "{{topic}}",
        ),
        unit=unit,
    )


def _rate(
    title: str, name: str, legend: str = "", unit: str = "short", by: str = "", **options: str
) -> Panel:
    grouped = f"sum by ({by}) " if by else "sum"
    return panel(title, (f"{grouped}(rate({name}{{$AT}}[$RATE]))", legend or title), unit=unit, **options)


OVERVIEW = Dashboard(
    "kbroker-overview",
    "kbroker: overview",
    (
        stat("brokers up", 'sum(up{job="kbroker",$AT})', alarm_below=1),
        stat(
            "alerts",
            'count(ALERTS{alertname=~"Kbroker.+",alertstate="firing"}) or vector(0)',
            alarm_above=1,
            doc="Those of deploy/prometheus/alerts.yml that fire now.",
        ),
        stat("records in", f'sum(rate({_IN}messagesin_total{{$AT,topic=""}}[$RATE]))', "cps"),
        stat("bytes in", f'sum(rate({_IN}bytesin_total{{$AT,topic=""}}[$RATE]))', "Bps"),
        stat("bytes out", f'sum(rate({_IN}bytesout_total{{$AT,topic=""}}[$RATE]))', "Bps"),
        stat("errors", "sum(rate(kbroker_request_errors_total{$AT}[$RATE])) or vector(0)", "cps"),
        stat("farthest behind", "max(kbroker_consumergroup_lag_seconds{$AT})", "s", alarm_above=300),
        stat(
            "disk free",
            "min(kbroker_disk_usable_bytes{$AT} / kbroker_disk_total_bytes{$AT})",
            "percentunit",
            alarm_below=0.1,
        ),
        panel(
            "bytes",
            (f'sum(rate({_IN}bytesin_total{{$AT,topic=""}}[$RATE]))', "in"),
            (f'sum(rate({_IN}bytesout_total{{$AT,topic=""}}[$RATE]))', "out"),
            unit="Bps",
        ),
        panel(
            "records in, by topic",
            (f'topk(10, sum by (topic) (rate({_IN}messagesin_total{{$AT,topic!=""}}[$RATE])))', "{{topic}}"),
            unit="cps",
        ),
        panel(
            "requests",
            ("topk(10, sum by (api) (rate(kbroker_requests_total{$AT}[$RATE])))", "{{api}}"),
            unit="reqps",
        ),
        panel(
            "one of a hundred requests takes",
            (_quantile("0.99", "kbroker_request_seconds", "api", _REQUESTS), "{{api}}"),
            unit="s",
            doc="Without what a long poll waited for others.",
        ),
        panel(
            "errors",
            (
                "topk(10, sum by (api, error) (rate(kbroker_request_errors_total{$AT}[$RATE])))",
                "{{api}} {{error}}",
            ),
            unit="cps",
        ),
        panel(
            "groups farthest behind",
            (
                "topk(10, max by (consumergroup, topic) (kbroker_consumergroup_lag_seconds{$AT}))",
                "{{consumergroup}} {{topic}}",
            ),
            unit="s",
        ),
        panel(
            "busy",
            (f"1 - avg_over_time({_IDLE}{{$AT}}[1m])", "event loop {{instance}}"),
            ('rate(process_cpu_seconds_total{job="kbroker",$AT}[$RATE])', "processor {{instance}}"),
            unit="percentunit",
            doc="One loop serves all clients: at 100 % it is full. Processor time is that of all threads.",
        ),
        panel("memory", ('process_resident_memory_bytes{job="kbroker",$AT}', "{{instance}}"), unit="bytes"),
        panel(
            "disk",
            ("kbroker_disk_usable_bytes{$AT}", "free {{instance}}"),
            ("sum by (instance) (kafka_log_log_size{$AT})", "records {{instance}}"),
            unit="bytes",
        ),
    ),
)

TOPICS = Dashboard(
    "kbroker-topics",
    "kbroker: topics",
    (
        stat("topics", "sum(kbroker_topics{$AT})"),
        stat("partitions", "sum(kbroker_partitions{$AT})"),
        stat("partitions in use", "sum(kbroker_open_partitions{$AT})"),
        stat("bytes", "sum(kafka_log_log_size{$AT})", "bytes"),
        stat(
            "records kept",
            "sum(kafka_topic_partition_current_offset{$AT}) - sum(kafka_topic_partition_oldest_offset{$AT})",
            doc="By offsets: compaction and transaction markers leave fewer.",
        ),
        _by_topic("records in", "messagesin", "cps"),
        _by_topic("bytes in", "bytesin", "Bps"),
        _by_topic("bytes out", "bytesout", "Bps"),
        _by_topic("batches in", "totalproducerequests", "cps"),
        _by_topic("partitions of fetches with records", "totalfetchrequests", "cps"),
        panel(
            "refused",
            (f"sum(rate({_IN}failedproducerequests_total{{$AT}}[$RATE]))", "produce"),
            (f"sum(rate({_IN}failedfetchrequests_total{{$AT}}[$RATE]))", "fetch"),
            unit="cps",
        ),
        panel(
            "size",
            ('topk(15, sum by (topic) (kafka_log_log_size{$AT,topic=~"$topic"}))', "{{topic}}"),
            unit="bytes",
        ),
        panel(
            "growth in an hour",
            ('topk(15, sum by (topic) (delta(kafka_log_log_size{$AT,topic=~"$topic"}[1h])))', "{{topic}}"),
            unit="bytes",
        ),
        panel(
            "segments", ('topk(15, sum by (topic) (kbroker_log_segments{$AT,topic=~"$topic"}))', "{{topic}}")
        ),
        panel(
            "largest partitions",
            'topk(50, kafka_log_log_size{$AT,topic=~"$topic"})',
            kind=TABLE,
            unit="bytes",
        ),
    ),
    (Variable("topic", "label_values(kafka_topic_partitions{$AT}, topic)"),),
)

_GROUP_TOPIC = "{{consumergroup}} {{topic}}"
_OF_GROUP = '$AT,consumergroup=~"$group"'
GROUPS = Dashboard(
    "kbroker-groups",
    "kbroker: consumer groups",
    (
        stat("groups", "sum(kbroker_groups{$AT}) or vector(0)"),
        stat("records to read", f"sum(kafka_consumergroup_lag_sum{{{_OF_GROUP}}})"),
        stat(
            "farthest behind", f"max(kbroker_consumergroup_lag_seconds{{{_OF_GROUP}}})", "s", alarm_above=300
        ),
        stat("members", f"sum(kafka_consumergroup_members{{{_OF_GROUP}}})"),
        stat("open transactions", "sum(kbroker_open_transactions{$AT}) or vector(0)"),
        stat("oldest transaction", "max(kbroker_oldest_transaction_seconds{$AT})", "s", alarm_above=1200),
        panel(
            "lag in records",
            (
                f"topk(15, sum by (consumergroup, topic) (kafka_consumergroup_lag_sum{{{_OF_GROUP}}}))",
                _GROUP_TOPIC,
            ),
        ),
        panel(
            "lag in time",
            (
                f"topk(15, max by (consumergroup, topic) (kbroker_consumergroup_lag_seconds{{{_OF_GROUP}}}))",
                _GROUP_TOPIC,
            ),
            unit="s",
            doc="How old the record is that the group would read next.",
        ),
        panel(
            "records read",
            (
                f"topk(15, sum by (consumergroup, topic) (clamp_min(deriv(kafka_consumergroup_current_offset_sum{{{_OF_GROUP}}}[5m]), 0)))",
                _GROUP_TOPIC,
            ),
            unit="cps",
            doc="As far as it is committed.",
        ),
        panel(
            "members",
            (f"sum by (consumergroup) (kafka_consumergroup_members{{{_OF_GROUP}}})", "{{consumergroup}}"),
        ),
        panel("groups by state", ("sum by (type, state) (kbroker_groups{$AT})", "{{type}} {{state}}")),
        _rate("rebalances", "kbroker_group_rebalances_total", "{{type}}", "cps", by="type"),
        panel(
            "partitions farthest behind",
            f"topk(50, kafka_consumergroup_lag{{{_OF_GROUP}}})",
            kind=TABLE,
        ),
    ),
    (Variable("group", "label_values(kafka_consumergroup_members{$AT}, consumergroup)"),),
)

_OF_QUEUE = '$AT,group=~"$group"'
QUEUES = Dashboard(
    "kbroker-queues",
    "kbroker: queues (share groups)",
    (
        stat("records to do", f"sum(kbroker_share_lag_records{{{_OF_QUEUE}}})"),
        stat("in flight", f"sum(kbroker_share_in_flight_records{{{_OF_QUEUE}}})"),
        stat("held by members", f"sum(kbroker_share_acquired_records{{{_OF_QUEUE}}})"),
        stat("dead letters", f"sum({_SHARE_DEAD}recordcount_total{{{_OF_QUEUE}}})", alarm_above=1),
        panel(
            "to do",
            (f"sum by (group, topic) (kbroker_share_lag_records{{{_OF_QUEUE}}})", "{{group}} {{topic}}"),
        ),
        panel(
            "in flight",
            (
                f"sum by (group, topic) (kbroker_share_in_flight_records{{{_OF_QUEUE}}})",
                "{{group}} {{topic}}",
            ),
        ),
        panel(
            "held by members",
            (f"sum by (group, topic) (kbroker_share_acquired_records{{{_OF_QUEUE}}})", "{{group}} {{topic}}"),
        ),
        panel(
            "what becomes of records",
            (
                f"sum by (group) (rate(kbroker_share_acknowledged_records_total{{{_OF_QUEUE}}}[$RATE]))",
                "{{group}} accepted",
            ),
            (
                f"sum by (group) (rate(kbroker_share_released_records_total{{{_OF_QUEUE}}}[$RATE]))",
                "{{group}} given back",
            ),
            (
                f"sum by (group) (rate(kbroker_share_archived_records_total{{{_OF_QUEUE}}}[$RATE]))",
                "{{group}} given up",
            ),
            unit="cps",
        ),
        panel(
            "deliveries, by how often a record was delivered",
            (
                f"sum by (delivery) (rate(kbroker_share_deliveries_total{{{_OF_QUEUE}}}[$RATE]))",
                "{{delivery}}",
            ),
            unit="cps",
            doc="All above 1 were delivered before: released, or their lock ran out.",
        ),
        panel(
            "dead letters",
            (f"sum by (group) (rate({_SHARE_DEAD}recordcount_total{{{_OF_QUEUE}}}[$RATE]))", "{{group}}"),
            (
                f"sum by (group) (rate({_SHARE_DEAD}failedproducerequests_total{{{_OF_QUEUE}}}[$RATE]))",
                "{{group}} not written",
            ),
            unit="cps",
        ),
    ),
    (Variable("group", "label_values(kbroker_share_lag_records{$AT}, group)"),),
)

SYSTEM = Dashboard(
    "kbroker-system",
    "kbroker: system",
    (
        stat("up for", 'time() - max(process_start_time_seconds{job="kbroker",$AT})', "s"),
        stat("connections", "sum(kbroker_connections{$AT})"),
        stat("memory", 'sum(process_resident_memory_bytes{job="kbroker",$AT})', "bytes"),
        stat(
            "files open",
            'max(process_open_fds{job="kbroker",$AT} / process_max_fds{job="kbroker",$AT})',
            "percentunit",
            alarm_above=0.9,
        ),
        stat("waiting for memory", "sum(kbroker_budget_waiting{$AT})", alarm_above=1),
        stat("slow requests in an hour", "sum(increase(kbroker_slow_requests_total{$AT}[1h]))"),
        stat("malformed in an hour", "sum(increase(kbroker_malformed_requests_total{$AT}[1h]))"),
        stat("series left out", "sum(kbroker_metrics_left_out{$AT}) or vector(0)", alarm_above=1),
        panel(
            "busy",
            (f"1 - avg_over_time({_IDLE}{{$AT}}[1m])", "event loop {{instance}}"),
            ('rate(process_cpu_seconds_total{job="kbroker",$AT}[$RATE])', "processor {{instance}}"),
            unit="percentunit",
        ),
        panel(
            "memory",
            ('process_resident_memory_bytes{job="kbroker",$AT}', "resident"),
            ("kbroker_budget_used_bytes{$AT}", "held for clients"),
            ("kbroker_budget_limit_bytes{$AT}", "may be held for clients"),
            unit="bytes",
        ),
        panel("files open", ('process_open_fds{job="kbroker",$AT}', "{{instance}}")),
        panel("connections", ("sum by (listener) (kbroker_connections{$AT})", "{{listener}}")),
        panel(
            "new connections",
            ("sum by (listener) (rate(kbroker_connections_opened_total{$AT}[$RATE]))", "{{listener}}"),
            (
                "sum by (listener) (rate(kbroker_connections_refused_total{$AT}[$RATE]))",
                "{{listener}} refused",
            ),
            unit="cps",
        ),
        panel(
            "quotas",
            ("sum(rate(kbroker_throttled_requests_total{$AT}[$RATE]))", "requests above a quota"),
            ("sum(rate(kbroker_throttle_seconds_total{$AT}[$RATE]))", "seconds of waiting"),
        ),
        panel(
            "one of a hundred requests takes",
            (_quantile("0.99", "kbroker_request_seconds", "api"), "{{api}}"),
            unit="s",
        ),
        panel(
            "every second request takes",
            (_quantile("0.5", "kbroker_request_seconds", "api"), "{{api}}"),
            unit="s",
        ),
        panel(
            "bytes of requests and answers",
            ("sum(rate(kbroker_request_bytes_total{$AT}[$RATE]))", "requests"),
            ("sum(rate(kbroker_response_bytes_total{$AT}[$RATE]))", "answers"),
            unit="Bps",
        ),
        panel(
            "disk",
            ("kbroker_disk_usable_bytes{$AT}", "free"),
            ("kbroker_disk_total_bytes{$AT}", "size"),
            unit="bytes",
        ),
        panel(
            "disk in use",
            ("rate(kafka_server_kafkaserver_linux_disk_read_bytes{$AT}[$RATE])", "read"),
            ("rate(kafka_server_kafkaserver_linux_disk_write_bytes{$AT}[$RATE])", "written"),
            unit="Bps",
        ),
        panel(
            "syncs and reads that the page cache did not have",
            (_quantile("0.99", "kbroker_flush_seconds", ""), "one of a hundred syncs"),
            (_quantile("0.99", "kbroker_cold_read_seconds", ""), "one of a hundred reads"),
            unit="s",
        ),
        panel(
            "how many of them",
            ("sum(rate(kbroker_flush_seconds_count{$AT}[$RATE]))", "syncs"),
            ("sum(rate(kbroker_cold_read_seconds_count{$AT}[$RATE]))", "reads"),
            unit="cps",
        ),
        panel(
            "retention and compaction",
            ("sum(rate(kbroker_retention_deleted_bytes_total{$AT}[$RATE]))", "deleted by retention"),
            ("sum(rate(kbroker_compaction_read_bytes_total{$AT}[$RATE]))", "read by compaction"),
            ("sum(rate(kbroker_compaction_written_bytes_total{$AT}[$RATE]))", "written by compaction"),
            unit="Bps",
        ),
        panel(
            "HTTP",
            ("sum by (status) (rate(kbroker_http_requests_total{$AT}[$RATE]))", "{{status}}"),
            unit="reqps",
        ),
        panel(
            "one of a hundred HTTP requests takes",
            (
                f"topk(10, {_quantile('0.99', 'kbroker_http_request_seconds', 'method, path')})",
                "{{method}} {{path}}",
            ),
            unit="s",
        ),
        panel("versions", "kbroker_build_info{$AT}", kind=TABLE),
    ),
)

DASHBOARDS = (OVERVIEW, TOPICS, GROUPS, QUEUES, SYSTEM)


def files() -> dict[str, str]:
    """File name → JSON."""
    return {
        f"{dashboard.uid}.json": json.dumps(document(dashboard), indent=2, ensure_ascii=False) + "\n"
        for dashboard in DASHBOARDS
    }


if __name__ == "__main__":
    for name, text in files().items():
        (TARGET / name).write_text(text)
