"""`kbroker pipeline demo`: a broker, a day of orders, bronze → silver → gold, the result as a chart."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from kbroker.pipeline import orders, reading, runner
from kbroker.pipeline.live import Display
from kbroker.pipeline.render import bar_chart, table
from kbroker.pipeline.session import SHORT_LIVED, opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from kbroker.testing import KafkaBroker

EXAMPLE = Path(__file__).with_name("example.yml")


def demo(directory: Path, count: int, say: Callable[[str], None], *, kept: bool) -> None:
    """Everything it makes is in `directory`, whose paths are shown if it is `kept`."""
    from kbroker.testing import KafkaBroker

    say("1. starting Spark (some seconds)")
    settings = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": SHORT_LIVED}
    with opened("kbroker-demo", settings) as spark:
        say("2. starting a broker with a topic of 3 partitions")
        with KafkaBroker(topics={"orders": 3}, data=directory / "broker") as broker:
            say(f"3. sending {count:,} orders, some of them invalid")
            invalid = _send(broker.bootstrap_servers, count)
            file = directory / "pipeline.yml"
            file.write_text(_adapted(EXAMPLE.read_text(), broker.bootstrap_servers))
            say(f"4. running {file if kept else 'the example'}: orders → bronze → silver → gold")
            display = Display()
            pipeline = runner.once(reading.load(file))
            display.close(runner.Runner(pipeline, spark).run(display))
            say("")
            say(_revenue(spark, directory / "tables" / "gold_hourly_revenue"))
            say("")
            say(_tables(spark, directory / "tables", kept=kept))
            say("")
            say(_rejections(broker, invalid))


def _send(bootstrap_servers: str, count: int) -> int:
    from kbroker.kafka_python import load

    producer = load().KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=20, compression_type="lz4")
    invalid = 0
    for order in orders.orders(count):
        producer.send("orders", order.value, key=order.key)
        invalid += not order.valid
    producer.flush()
    producer.close()
    return invalid


def _adapted(text: str, bootstrap_servers: str) -> str:
    return re.sub(r"(?m)^bootstrap_servers: .*$", f"bootstrap_servers: {bootstrap_servers}", text)


def _revenue(spark: SparkSession, path: Path) -> str:
    """Hours down, categories across, then a chart of the day."""
    rows = spark.read.format("delta").load(str(path)).selectExpr(
        "date_format(window_start, 'HH:mm') hour", "category", "revenue"
    ).collect()  # fmt: skip
    categories = sorted({row.category for row in rows})
    by_hour: dict[str, dict[str, float]] = {}
    for row in rows:
        by_hour.setdefault(row.hour, {})[row.category] = row.revenue
    totals = {hour: sum(by_hour[hour].values()) for hour in sorted(by_hour)}
    lines = [
        (hour, *(f"{by_hour[hour].get(name, 0):,.0f}" for name in categories), f"{total:,.0f}")
        for hour, total in totals.items()
    ]
    return (
        "Revenue per hour and category (gold)\n\n"
        + table(("hour", *categories, "total"), lines)
        + "\n\nRevenue per hour\n\n"
        + bar_chart(totals)
    )


def _tables(spark: SparkSession, directory: Path, *, kept: bool) -> str:
    found = [
        (path.name, spark.read.format("delta").load(str(path)).count(), *([str(path)] if kept else []))
        for path in sorted(directory.iterdir())
    ]
    return table(("table", "rows", *(["where"] if kept else [])), found)


def _rejections(broker: KafkaBroker, invalid: int) -> str:
    rejected = [dict(record.headers) for record in broker.records("orders.rejected")]
    reasons = Counter((headers.get("kbroker.reason") or b"").decode() for headers in rejected)
    said = f"Rejected orders in the topic orders.rejected: {len(rejected):,} of {invalid:,} invalid ones"
    return f"{said}\n\n{table(('reason', 'orders'), reasons.most_common())}"
