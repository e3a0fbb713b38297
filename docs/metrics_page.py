"""Writes docs/metrics.md from the table of metrics: `python -m docs.metrics_page`."""

from __future__ import annotations

from pathlib import Path

from kbroker.observability.table import sections

TARGET = Path(__file__).with_name("metrics.md")

_HEAD = """\
# Metrics

Derived from the table of metrics (kbroker/observability/table.py) by docs/metrics_page.py.

`GET /metrics` on the HTTP port tells all of them as text for Prometheus, or as OpenMetrics for who asks for
`application/openmetrics-text`. Where users are on, it is for who may describe the cluster.

`--metrics-port` (`kbroker.metrics.port`) opens a port that has nothing but metrics and health. It is as
protected as HTTP, with settings of its own under `listener.name.metrics.`; `METRICS:PLAINTEXT` in
`listener.security.protocol.map` leaves it without TLS and logins; then `User:ANONYMOUS` needs the right to
describe the cluster.

    scrape_configs:
      - job_name: kbroker
        static_configs:
          - targets: ["127.0.0.1:8080"]

Nothing is read but at a scrape, and a scrape takes turns with all other work. Of a metric with more series
than `kbroker.metrics.max.series` some are left out; `kbroker_metrics_left_out` tells how many. Counters begin
at 0 with each start of the broker. Where a series is of a partition that cannot be read, its value is NaN.

Requests that take longer than `kbroker.slow.request.ms` are logged by `kbroker.slow`, with where the time
went:

    slow: Produce v9 of 'loader' at 10.0.0.7 took 1240 ms: 2 ms until its turn, 1 ms at work, …

Waiting is mostly for the disk; what a long poll waits for others does not count, neither here nor in
`kbroker_request_seconds`. Prometheus gets the text compressed, as it asks for it.

Clients' own metrics (KIP-714: producers, consumers and the like of Java and librdkafka) are told as well once
somebody subscribes to them:

    kafka-client-metrics.sh --bootstrap-server localhost:9092 --alter --name all --metrics '*' \\
        --interval 30000

Each of their series names its client; `kbroker_client_info` tells more, and joins:
`kbroker_client_producer_record_send_total * on (client_instance_id) group_left (client_software_version)
kbroker_client_info`. `kbroker.telemetry.max.series` bounds them. A client is forgotten when it has not pushed
for three intervals. With `kbroker.telemetry.exporters=otlp` the same goes to an OpenTelemetry collector
(`kbroker.otlp.endpoint`).
"""


def text() -> str:
    parts = [_HEAD]
    for title, families in sections():
        rows = [
            f"| `{family.name}` | {family.kind} | {', '.join(family.labels)} | {family.doc} |"
            for family in families
        ]
        parts.append(
            f"\n## {title}\n\n| metric | type | labels | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
        )
    return "".join(parts)


if __name__ == "__main__":
    TARGET.write_text(text())
