"""The pipeline with real Spark on both brokers: what is declared is what lands in the tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compat.clients.spark.jobs import Job
from compat.clients.spark.topics import Topic
from kbroker.pipeline import kafka_client, plan, replay, status
from kbroker.pipeline.ranges import Range

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., Topic]


def orders(*numbers: int, **more: Any) -> list[str]:
    return [
        json.dumps({"id": n, "placed_at": f"2026-01-01T{n % 24:02d}:30:00Z", "amount": 10.0 * n, **more})
        for n in numbers
    ]


SOURCE = """\
sources:
  orders:
    topics: {topic}
    decode:
      format: json
      schema: {{id: bigint, placed_at: timestamp, amount: double}}
    validate:
      - id is not null
      - {{name: amount is positive, expect: amount > 0}}
    dead_letter: {topic}.rejected
    watermark: {{column: placed_at, delay: 1 hour}}
"""
NOT_REJECTING = SOURCE.replace("    dead_letter: {topic}.rejected\n", "")


def test_bronze_silver_gold_with_dead_letters_progress_and_status(
    job: Job, new_topic: NewTopic, source: Callable[..., Any]
) -> None:
    topic = new_topic(2)
    topic.produce([*orders(1, 2, 3), "{broken", None], headers=[("h", b"1")])
    topic.produce([*orders(2, 4), *orders(5, amount=-1)], partition=1)
    text = (
        f"progress_group: {topic}\n"
        + SOURCE.format(topic=topic)
        + """\
steps:
  unique_orders: {deduplicate: {from: orders, by: id}}
  enriched: {sql: "SELECT *, date(placed_at) AS day FROM unique_orders"}
  hourly:
    window: {from: orders, time: placed_at, size: 1 hour, aggregate: {revenue: sum(amount), n: count(*)}}
sinks:
  bronze: {from: orders, delta: ./bronze}
  silver: {from: enriched, delta: ./silver, mode: upsert, key: id, partition_by: day}
  gold: {from: hourly, delta: ./gold, mode: upsert, key: window_start}
"""
    )
    done = job.run(text)
    assert job.rows("bronze", "_partition", "_offset", "id") == [
        (0, 0, 1),
        (0, 1, 2),
        (0, 2, 3),
        (1, 0, 2),
        (1, 1, 4),
    ]
    assert job.rows("silver", "id", "amount") == [(1, 10.0), (2, 20.0), (3, 30.0), (4, 40.0)]
    gold = job.rows("gold", "window_start", "revenue", "n")
    assert [(start.hour, revenue, n) for start, revenue, n in gold] == [
        (1, 10.0, 1), (2, 40.0, 2), (3, 30.0, 1), (4, 40.0, 1),
    ]  # fmt: skip
    assert done["orders.dead_letter"].rejected == 3
    assert done["bronze"].rows == 8

    letters = source(subscribe=f"{topic}.rejected", includeHeaders=True).collect()
    found = {
        header(letter, "kbroker.reason"): (
            header(letter, "kbroker.topic"),
            header(letter, "kbroker.partition"),
            header(letter, "kbroker.offset"),
            letter.value and bytes(letter.value).decode(),
            header(letter, "h"),
        )
        for letter in letters
    }
    assert found == {
        "the value is no json of the schema": (topic.name, "0", "3", "{broken", "1"),
        "the value is null": (topic.name, "0", "4", None, "1"),
        "amount is positive": (topic.name, "1", "2", orders(5, amount=-1)[0], None),
    }

    pipeline = job.declare(text)
    with kafka_client.connected(pipeline) as client:
        statuses = {each.name: each for each in status.status(pipeline, client)}
        assert {name: each.lag for name, each in statuses.items()} == dict.fromkeys(statuses, 0)
        topic.produce(orders(6))
        assert status.status(pipeline, client)[0].lag == 1
    assert topic.committed(f"{topic}.bronze") == {0: 5, 1: 3}

    again = job.run(text)
    assert again["bronze"].rows == 9
    assert len(job.rows("bronze", "id")) == 6, "a later run continues: nothing twice"
    assert job.rows("silver", "id") == [(1,), (2,), (3,), (4,), (6,)]


def header(record: Any, name: str) -> str | None:
    values = [bytes(each.value).decode() for each in record.headers or () if each.key == name]
    return values[0] if values else None


def test_formats(job: Job, new_topic: NewTopic, spark: SparkSession) -> None:
    """csv, avro, string, raw, JSON Schema and an inferred schema, one source and one table each."""
    text, binary, avro = new_topic(), new_topic(), new_topic()
    text.produce(["1,ada", "x,bob", "2"])
    binary.produce([b"\xff\x00"])
    fields = [{"name": "id", "type": "long"}, {"name": "s", "type": "string"}]
    schema = {"type": "record", "name": "r", "fields": fields}
    send_avro(spark, avro, json.dumps(schema))
    avro.produce([b"\x01"])
    lines, inferred, ruled = new_topic(), new_topic(), new_topic()
    lines.produce(["3;c d;2.5", "4;e;7"])
    inferred.produce(['{"id": 1, "who": {"name": "ada"}}', '{"id": 2, "tags": ["x"]}'])
    ruled.produce(['{"id": 1}', '{"id": 0}', "{}"])
    job.run(
        f"""\
sources:
  c: {{topics: {text}, decode: {{format: csv, schema: "id int, name string"}}, on_reject: drop}}
  s: {{topics: {text}, decode: string}}
  r: {{topics: {binary}}}
  a: {{topics: {avro}, decode: {{format: avro, avro_schema: {json.dumps(schema)}}}, on_reject: drop}}
  i: {{topics: {inferred}, decode: {{format: json, infer: 100}}}}
  l: {{topics: {lines}, decode: {{format: csv, infer: 9, columns: [id, name, size], options: {{sep: ;}}}}}}
  n: {{topics: {lines}, decode: {{format: csv, infer: 9}}}}
  j:
    topics: {ruled}
    on_reject: drop
    decode:
      format: json
      json_schema: {{properties: {{id: {{type: integer, minimum: 1}}}}, required: [id]}}
sinks:
  c: {{from: c, parquet: ./c}}
  s: {{from: s, parquet: ./s}}
  r: {{from: r, parquet: ./r}}
  a: {{from: a, parquet: ./a}}
  i: {{from: i, parquet: ./i}}
  l: {{from: l, parquet: ./l}}
  n: {{from: n, parquet: ./n}}
  j: {{from: j, parquet: ./j}}
"""
    )

    def rows(table: str, *columns: str) -> list[tuple[Any, ...]]:
        return job.rows(table, *columns, format="parquet")

    assert rows("c", "id", "name") == [(1, "ada")]
    assert rows("s", "value") == [("1,ada",), ("2",), ("x,bob",)]
    assert [bytes(value) for (value,) in rows("r", "value")] == [b"\xff\x00"]
    assert rows("a", "id", "s") == [(1, "one")]
    assert rows("i", "id", "who.name") == [(1, "ada"), (2, None)]
    assert rows("j", "id") == [(1,)]
    assert rows("l", "id", "name", "size") == [(3, "c d", 2.5), (4, "e", 7.0)]
    assert rows("n", "c0") == [("3;c d;2.5",), ("4;e;7",)]
    kept = {name: (job.directory / "state" / "schemas" / f"{name}.ddl").read_text() for name in "iln"}
    assert kept == {
        "i": "id BIGINT, tags ARRAY<STRING>, who STRUCT<name: STRING>\n",
        "l": "id INT, name STRING, size DOUBLE\n",
        "n": "c0 STRING\n",
    }


def send_avro(spark: SparkSession, topic: Topic, schema: str) -> None:
    from pyspark.sql.avro.functions import to_avro

    frame = spark.sql("select named_struct('id', 1L, 's', 'one') row")
    writer = frame.select(to_avro("row", schema).alias("value")).write.format("kafka")
    writer.option("kafka.bootstrap.servers", topic.bootstrap).option("topic", topic.name).save()


def test_joins_and_a_topic_as_sink(job: Job, new_topic: NewTopic, source: Callable[..., Any]) -> None:
    left, right = new_topic(), new_topic()
    left.produce(orders(1, 2, 3))
    right.produce(
        ['{"id": 1, "paid_at": "2026-01-01T01:40:00Z"}', '{"id": 3, "paid_at": "2026-01-01T03:50:00Z"}']
    )
    (job.directory / "names.csv").write_text("id,name\n1,ada\n2,bob\n")
    out = new_topic()
    job.run(
        f"""\
sources:
  orders:
    topics: {left}
    decode: {{format: json, schema: "id bigint, placed_at timestamp, amount double"}}
    watermark: {{column: placed_at, delay: 1 hour}}
  payments:
    topics: {right}
    decode: {{format: json, schema: "id bigint, paid_at timestamp"}}
    watermark: {{column: paid_at, delay: 1 hour}}
tables:
  names: {{path: ./names.csv, format: csv, schema: "id bigint, name string", options: {{header: true}}}}
steps:
  named: {{join: {{left: orders, right: names, on: id, how: left}}}}
  paid:
    join:
      left: orders
      right: payments
      on: left.id = right.id and paid_at between placed_at and placed_at + interval 1 hour
sinks:
  named: {{from: named, kafka: {out}, key: id}}
  paid: {{from: paid, delta: ./paid}}
"""
    )
    assert [(id, paid.minute) for id, paid in job.rows("paid", "id", "paid_at")] == [(1, 40), (3, 50)]
    records = [(r.key.decode(), json.loads(r.value)) for r in source(subscribe=out).collect()]
    assert sorted((key, value.get("name")) for key, value in records) == [
        ("1", "ada"),
        ("2", "bob"),
        ("3", None),
    ]
    assert "_offset" not in records[0][1], "Kafka's own columns stay out of the JSON"


def test_replay_repairs_tables_without_duplicates(job: Job, new_topic: NewTopic, spark: SparkSession) -> None:
    from delta.tables import DeltaTable

    topic = new_topic(retention_ms="-1")
    hour = 3_600_000
    first = 1_767_225_600_000  # 2026-01-01T00:00Z
    topic.produce(orders(*range(1, 9)), timestamps=[first + n * hour for n in range(1, 9)])
    text = (
        NOT_REJECTING.format(topic=topic)
        + """\
steps:
  hourly: {window: {from: orders, time: placed_at, size: 1 hour, aggregate: {revenue: sum(amount)}}}
sinks:
  bronze: {from: orders, delta: ./bronze}
  silver: {from: orders, delta: ./silver, mode: upsert, key: id}
  gold: {from: hourly, delta: ./gold, mode: upsert, key: window_start}
  files: {from: orders, parquet: ./files}
"""
    )
    job.run(text)
    before = {name: job.rows(name, "*") for name in ("gold",)} | {
        name: job.rows(name, "id", "amount", "_offset") for name in ("bronze", "silver")
    }
    for name, lost in (("bronze", "id in (3, 4)"), ("silver", "id = 5"), ("gold", "revenue in (30, 40)")):
        DeltaTable.forPath(spark, str(job.directory / name)).delete(lost)
    topic.produce(orders(9), timestamps=[first + 5 * hour])  # the stream has not read it yet

    done = replayed(job, text, Range(first + 3 * hour, first + 6 * hour))
    assert done["bronze"].records == 3
    assert "cannot tell what it has already" in done["files"].note
    after = {"gold": job.rows("gold", "*")} | {
        name: job.rows(name, "id", "amount", "_offset") for name in ("bronze", "silver")
    }
    assert after == before


def replayed(
    job: Job, text: str, wanted: Range, names: list[str] | None = None
) -> dict[str, replay.Replayed]:
    pipeline = job.declare(text)
    with kafka_client.connected(pipeline) as client:
        done = replay.replay(job.spark, pipeline, client, wanted, replay.choose(pipeline, names))
    return {each.sink: each for each in done}


def test_replay_keeps_what_it_cannot_know_better(job: Job, new_topic: NewTopic, spark: SparkSession) -> None:
    """Newer rows without an order, windows whose records are gone, and every row of a record."""
    from delta.tables import DeltaTable

    topic = new_topic(retention_ms="-1")
    hour = 3_600_000
    first = 1_767_225_600_000  # 2026-01-01T00:00Z
    numbers = [*range(1, 9), 3]  # order 3 comes again, at the end
    topic.produce(orders(*numbers), timestamps=[first + n * hour + hour // 2 for n in [*range(1, 9), 9]])
    text = (
        NOT_REJECTING.format(topic=topic)
        + """\
steps:
  halves: {sql: "SELECT explode(array(1, 2)) half, * FROM orders"}
  plain: {sql: "SELECT id, unix_millis(_timestamp) sent FROM orders"}
  hourly: {window: {from: orders, time: placed_at, size: 1 hour, aggregate: {revenue: sum(amount)}}}
sinks:
  halves: {from: halves, delta: ./halves}
  plain: {from: plain, delta: ./plain, mode: upsert, key: id}
  gold: {from: hourly, delta: ./gold, mode: upsert, key: window_start}
"""
    )
    job.run(text)
    DeltaTable.forPath(spark, str(job.directory / "plain")).update("id = 3", {"sent": "1"})
    expected = {
        "halves": job.rows("halves", "_offset", "half"),
        "plain": job.rows("plain", "*"),
        "gold": job.rows("gold", "*"),
    }
    assert len(expected["halves"]) == 18
    DeltaTable.forPath(spark, str(job.directory / "halves")).delete("_offset in (3, 4)")
    DeltaTable.forPath(spark, str(job.directory / "plain")).delete("id = 4")
    DeltaTable.forPath(spark, str(job.directory / "gold")).delete("revenue = 50")
    topic.delete_records({0: 2})  # of hours 1 and 2: their windows cannot be computed any more
    wanted = Range(first + hour, first + 7 * hour)
    done = replayed(job, text, wanted)
    assert done["plain"].note.startswith("rows whose key is there left as they are")
    assert done["gold"].note == (
        "3 of 4 windows; the others are left as they are: they began before 2026-01-01T03:30:00Z, and older "
        "records are gone"
    )
    assert job.rows("plain", "*") == expected["plain"]
    assert job.rows("gold", "*") == expected["gold"]
    assert job.rows("halves", "_offset", "half") == expected["halves"]
    replayed(job, text, wanted, ["halves"])
    assert job.rows("halves", "_offset", "half") == expected["halves"]


def test_replay_merges_every_window_that_a_record_of_the_range_belongs_to(
    job: Job, new_topic: NewTopic, spark: SparkSession
) -> None:
    """The events are of January, the records of March; a window has records in the range and out of it."""
    from delta.tables import DeltaTable

    topic = new_topic(retention_ms="-1")
    march = 1_772_323_200_000  # 2026-03-01T00:00Z
    numbers = [*range(1, 9), *range(1, 9)]
    topic.produce(orders(*numbers), timestamps=[march + n * 1000 for n in range(16)])
    text = (
        NOT_REJECTING.format(topic=topic)
        + """\
steps:
  hourly: {window: {from: orders, time: placed_at, size: 1 hour, aggregate: {revenue: sum(amount)}}}
  sliding:
    window: {from: orders, time: placed_at, size: 2 hours, slide: 1 hour, aggregate: {revenue: sum(amount)}}
sinks:
  hourly: {from: hourly, delta: ./hourly, mode: upsert, key: window_start}
  sliding: {from: sliding, delta: ./sliding, mode: upsert, key: window_start}
"""
    )
    job.run(text)

    def windows(table: str) -> list[tuple[int, float]]:
        return [(start.hour, revenue) for start, revenue in job.rows(table, "window_start", "revenue")]

    hourly, sliding = windows("hourly"), windows("sliding")
    assert hourly == [(n, 20.0 * n) for n in range(1, 9)]
    for name in ("hourly", "sliding"):
        DeltaTable.forPath(spark, str(job.directory / name)).delete()
    done = replayed(job, text, Range(march + 2000, march + 5000))  # orders 3, 4 and 5
    assert (done["hourly"].note, done["sliding"].note) == ("3 windows", "4 windows")
    assert windows("hourly") == hourly[2:5]
    assert windows("sliding") == sliding[2:6]


def test_the_plan_shows_schemas_and_writes_nothing(
    job: Job, new_topic: NewTopic, spark: SparkSession
) -> None:
    topic = new_topic()
    text = SOURCE.format(topic=topic) + "sinks:\n  bronze: {from: orders, delta: ./bronze}\n"
    shown = plan.describe(spark, job.declare(text))
    assert "sink bronze: orders → delta" in shown
    assert "  amount: double" in shown
    assert "starts anew" in shown
    assert not (job.directory / "bronze").exists()
