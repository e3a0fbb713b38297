"""All alerts, once: `python -m deploy.prometheus.alerts [RUN_BOOK_URL]` writes alerts.yml and docs/alerts.md.

The URL is where the run book is read; without one it is its path in the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import yaml

RULES = Path(__file__).with_name("alerts.yml")
PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"
RUN_BOOK = "docs/alerts.md"

CRITICAL, WARNING, INFO = "critical", "warning", "info"


class Alert(NamedTuple):
    name: str
    severity: str
    expr: str
    lasts: str
    """How long it must be so."""
    summary: str
    meaning: str
    to_do: str


ALERTS = (
    Alert(
        "KbrokerDown",
        CRITICAL,
        'up{job="kbroker"} == 0 or absent(up{job="kbroker"})',
        "1m",
        "No metrics come from {{ $labels.instance }}",
        "Prometheus cannot scrape the broker's HTTP port, or knows of none with the job `kbroker`. Most often the broker is down or starting.",
        "[Down](operations.md#down). If `kbroker ping` gets an answer, look at the HTTP port: its address in prometheus.yml, and the login, if the broker asks for one.",
    ),
    Alert(
        "KbrokerRestarts",
        WARNING,
        'changes(process_start_time_seconds{job="kbroker"}[15m]) > 2',
        "0m",
        "{{ $labels.instance }} has started {{ $value }} times in 15 minutes",
        "Something ends the broker again and again: a crash, the kernel for want of memory, or a probe that gives it too little time to recover.",
        "Read the end of the log before each start, and `dmesg` for `Out of memory`. Give a start the time that it needs: [Start, stop, health](operations.md#start-stop-health).",
    ),
    Alert(
        "KbrokerDiskLow",
        WARNING,
        "kbroker_disk_usable_bytes / kbroker_disk_total_bytes < 0.1",
        "5m",
        "{{ $value | humanizePercentage }} of the volume of {{ $labels.instance }} are free",
        "Less than a tenth of the data directory's volume is free.",
        "[Disk](operations.md#disk): what takes the room, and how to make some. The dashboard Topics shows the largest.",
    ),
    Alert(
        "KbrokerDiskFull",
        CRITICAL,
        "kbroker_disk_usable_bytes / kbroker_disk_total_bytes < 0.03",
        "1m",
        "{{ $value | humanizePercentage }} of the volume of {{ $labels.instance }} are free",
        "The volume is full, or will be in a moment. Producers are refused with KAFKA_STORAGE_ERROR until there is room; nothing that was acknowledged is lost.",
        "[Disk](operations.md#disk): make room now.",
    ),
    Alert(
        "KbrokerDiskFillsUp",
        WARNING,
        "predict_linear(kbroker_disk_usable_bytes[6h], 86400) < 0 and kbroker_disk_usable_bytes / kbroker_disk_total_bytes < 0.5",
        "30m",
        "The volume of {{ $labels.instance }} will be full within a day",
        "If the last six hours go on like this, the volume is full in less than 24 hours. Only told where more than half is used: what is young has retention still before it.",
        "[Disk](operations.md#disk). Compare bytes in with retention: [Capacity](operations.md#capacity).",
    ),
    Alert(
        "KbrokerGroupBehind",
        WARNING,
        "max by (instance, consumergroup, topic) (kbroker_consumergroup_lag_seconds) > 300",
        "10m",
        "Group {{ $labels.consumergroup }} is {{ $value | humanizeDuration }} behind in {{ $labels.topic }}",
        "The next record that the group would read is older than five minutes, and has been for ten.",
        "[Lag](operations.md#lag). A group that nobody needs any more is behind for ever: `kbroker group delete`.",
    ),
    Alert(
        "KbrokerGroupStands",
        WARNING,
        "kafka_consumergroup_lag_sum > 0 and changes(kafka_consumergroup_current_offset_sum[15m]) == 0 and on (instance, consumergroup) kafka_consumergroup_members > 0",
        "15m",
        "Group {{ $labels.consumergroup }} has members and reads nothing of {{ $labels.topic }}",
        "There are records to read and members to read them, and no offset was committed in 15 minutes: a record that cannot be processed, or a consumer that hangs.",
        "[Lag](operations.md#lag). `kbroker group describe GROUP` names the members; `kbroker consume TOPIC -p PARTITION -o OFFSET -n 1` shows the record that is next.",
    ),
    Alert(
        "KbrokerNoNewRecords",
        WARNING,
        "sum by (instance, topic) (delta(kafka_topic_partition_current_offset[1h])) == 0 and sum by (instance, topic) (delta(kafka_topic_partition_current_offset[1h] offset 1d)) > 0",
        "10m",
        "Topic {{ $labels.topic }} has had no records for an hour; at this time yesterday it had some",
        "A topic that used to get records gets none.",
        "[No new records](operations.md#no-new-records). Topics that rest at times need a rule of their own, or none.",
    ),
    Alert(
        "KbrokerErrors",
        CRITICAL,
        'sum by (instance, api, error) (rate(kbroker_request_errors_total{error=~"UNKNOWN_SERVER_ERROR|KAFKA_STORAGE_ERROR|CORRUPT_MESSAGE"}[5m])) > 0',
        "2m",
        "{{ $labels.instance }} answers {{ $labels.api }} with {{ $labels.error }}",
        "Errors that are the broker's or its disk's: KAFKA_STORAGE_ERROR, the disk is full or fails; CORRUPT_MESSAGE, records on the disk are damaged, or a client sends broken ones; UNKNOWN_SERVER_ERROR, a defect.",
        "The log has a line for each: [Errors](operations.md#errors), [Disk](operations.md#disk), [Lost records](operations.md#lost-records).",
    ),
    Alert(
        "KbrokerProduceRefused",
        WARNING,
        'rate(kafka_server_brokertopicmetrics_failedproducerequests_total[5m]) / (rate(kafka_server_brokertopicmetrics_failedproducerequests_total[5m]) + rate(kafka_server_brokertopicmetrics_totalproducerequests_total{topic=""}[5m])) > 0.05',
        "10m",
        "{{ $value | humanizePercentage }} of what producers send to {{ $labels.instance }} is refused",
        "More than one in twenty batches is refused: topics that are not there, records that are too large, missing rights, sequences out of order.",
        '`topk(5, rate(kbroker_request_errors_total{api="Produce"}[5m]))` names the errors; the producers\' logs say which topic.',
    ),
    Alert(
        "KbrokerSlow",
        WARNING,
        'histogram_quantile(0.99, sum by (instance, api, le) (rate(kbroker_request_seconds_bucket{api=~"Produce|Fetch|OffsetCommit"}[5m]))) > 0.5',
        "10m",
        "One of a hundred {{ $labels.api }} requests takes {{ $value | humanizeDuration }}",
        "Requests wait: for the processor, for the disk, or for each other.",
        "[Latency and load](operations.md#latency-and-load). The log tells slow requests with where their time went (`kbroker.slow.request.ms`); `kbroker top` shows which they are.",
    ),
    Alert(
        "KbrokerUnderLoad",
        WARNING,
        "avg_over_time(kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent[5m]) < 0.15",
        "10m",
        "The event loop of {{ $labels.instance }} is {{ $value | humanizePercentage }} idle",
        "The one loop that serves all clients has hardly any time left: latency grows from here on.",
        "[Latency and load](operations.md#latency-and-load): larger batches, fewer and longer fetches; then quotas, a faster core, or another broker.",
    ),
    Alert(
        "KbrokerFlushSlow",
        WARNING,
        "histogram_quantile(0.99, sum by (instance, le) (rate(kbroker_flush_seconds_bucket[10m]))) > 1",
        "10m",
        "The disk of {{ $labels.instance }} takes {{ $value | humanizeDuration }} to sync",
        "The disk is slow to make writes durable: it is busy with something else, its budget of operations is used up, or it fails. With `kbroker.fsync` producers wait for it.",
        "`iostat -x 1` and `dmesg`. What else is on this disk? Is compaction or a backup running?",
    ),
    Alert(
        "KbrokerMemoryForClients",
        WARNING,
        "min_over_time(kbroker_budget_waiting[5m]) > 0",
        "5m",
        "Requests to {{ $labels.instance }} wait for memory",
        "Clients have had all of `queued.max.request.bytes` in requests and answers that are under way for five minutes: very large requests, or many clients that read slowly.",
        "The dashboard System shows what is used. Raise `queued.max.request.bytes` if the machine has the memory; else look for clients with large `fetch.max.bytes` or slow networks.",
    ),
    Alert(
        "KbrokerFilesRunOut",
        WARNING,
        'process_open_fds{job="kbroker"} / process_max_fds{job="kbroker"} > 0.9',
        "5m",
        "{{ $labels.instance }} has {{ $value | humanizePercentage }} of the files open that it may",
        "Connections and logs have nearly all descriptors. Logs are closed and opened again, which is slow; at the end new connections are refused.",
        "Raise `LimitNOFILE`: [Capacity](operations.md#capacity). Many connections of one client are a client that does not close them.",
    ),
    Alert(
        "KbrokerConnectionsRefused",
        WARNING,
        "rate(kbroker_connections_refused_total[5m]) > 0",
        "5m",
        "{{ $labels.instance }} refuses connections at {{ $labels.listener }}",
        "There are more connections than `max.connections`, `max.connections.per.ip` or the rates of new ones allow.",
        "The log names the addresses. Raise the setting, or find the client that opens too many.",
    ),
    Alert(
        "KbrokerTransactionHangs",
        WARNING,
        "kbroker_oldest_transaction_seconds > 1200",
        "5m",
        "A transaction has been open for {{ $value | humanizeDuration }}",
        "No transaction may last longer than `transaction.max.timeout.ms` (15 minutes unless set). Until it ends, `read_committed` consumers of its partitions see nothing that is newer.",
        "`kafka-transactions.sh list` and `describe` show it, `kafka-transactions.sh abort` ends it; or `GET /transactions`.",
    ),
    Alert(
        "KbrokerDeadLetters",
        INFO,
        "increase(kafka_server_sharegroupmetrics_deadletterqueuerecordcount_total[15m]) > 0",
        "0m",
        "Group {{ $labels.group }} has put records aside",
        "Consumers of the share group rejected records, or failed with them too often.",
        "`kbroker dlq list` and `kbroker dlq show` tell which and why, `kbroker dlq replay` sends them back: [dead-letters.md](dead-letters.md).",
    ),
    Alert(
        "KbrokerDeadLettersFail",
        CRITICAL,
        "increase(kafka_server_sharegroupmetrics_deadletterqueuefailedproducerequests_total[15m]) > 0",
        "0m",
        "Dead letters of group {{ $labels.group }} cannot be written",
        "The dead-letter topic is missing, refuses the records (too large?), or the disk is full. The records stay in flight; none is lost.",
        "The log says why. See that the topic of `errors.deadletterqueue.topic.name` is there and takes records of this size: [dead-letters.md](dead-letters.md).",
    ),
    Alert(
        "KbrokerMetricsLeftOut",
        INFO,
        "kbroker_metrics_left_out > 0",
        "15m",
        "{{ $value }} series of {{ $labels.metric }} are not told",
        "There are more partitions or groups than `kbroker.metrics.max.series`: alerts and dashboards do not see all of them.",
        "Raise `kbroker.metrics.max.series`, if Prometheus has room for the series.",
    ),
)


def rules(run_book: str = RUN_BOOK) -> str:
    """The file for Prometheus."""
    group = [
        {
            "alert": alert.name,
            "expr": alert.expr,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {
                "summary": alert.summary,
                "description": alert.meaning,
                "runbook_url": f"{run_book}#{alert.name.lower()}",
            },
        }
        for alert in ALERTS
    ]
    head = "# Made by `python -m deploy.prometheus.alerts`: change it there.\n"
    document = {"groups": [{"name": "kbroker", "rules": group}]}
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)


_HEAD = """\
# Alerts

What each alert means, and what to do. Derived from deploy/prometheus/alerts.py, as is deploy/prometheus/alerts.yml, the rules for Prometheus.

All thresholds are a beginning: what is late, large or slow depends on what the broker is for. Change alerts.py, run `python -m deploy.prometheus.alerts`, and give it
the URL at which this page can be read: it becomes the link in each alert (`runbook_url`). The rules expect a scrape job of the name `kbroker`, as in
deploy/prometheus/prometheus.yml, every 15 seconds.

| severity | |
|---|---|
| critical | somebody looks now |
| warning | somebody looks today |
| info | good to know |
"""


def page() -> str:
    return _HEAD + "".join(
        f"\n## {alert.name}\n\n*{alert.severity}*: {alert.meaning}\n\n**What to do.** {alert.to_do}\n\n"
        f"    {alert.expr}{'' if alert.lasts == '0m' else f'   # for {alert.lasts}'}\n"
        for alert in ALERTS
    )


if __name__ == "__main__":
    RULES.write_text(rules(*sys.argv[1:]))
    PAGE.write_text(page())
