"""Records that come too late for a deduplication or a window: counted, and sent as dead letters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from compat.clients.spark.jobs import Job
from compat.clients.spark.topics import Topic

TEXT = """\
sources:
  events:
    topics: {topic}
    decode: {{format: json, schema: "id string, at timestamp, size int"}}
    validate: [size > 0]
    dead_letter: {topic}.rejected
    watermark: {{column: at, delay: 1 hour, late: dead_letter}}
steps:
  small: {{sql: "SELECT id, at AS happened, _topic, _partition, _offset FROM events WHERE size < 100"}}
  unique_events: {{deduplicate: {{from: small, by: id}}}}
  busy: {{window: {{from: events, time: at, size: 2 hours, slide: 1 hour, aggregate: {{n: count(*)}}}}}}
sinks:
  silver: {{from: unique_events, delta: ./silver, mode: upsert, key: id}}
  gold: {{from: busy, delta: ./gold, mode: upsert, key: window_start}}
"""


def event(name: str, time: str, size: int = 1) -> str:
    return json.dumps({"id": name, "at": f"2026-01-01T{time}Z", "size": size})


def test_late_records_are_counted_and_sent_exactly_where_they_were_left_out(
    job: Job, new_topic: Callable[..., Topic], source: Callable[..., Any]
) -> None:
    topic = new_topic()
    text = TEXT.format(topic=topic)
    topic.produce([event("first", "10:00:00"), event("newest", "20:30:00")])  # the watermark is then 19:30
    done = job.run(text)
    assert [done[name].late for name in ("silver", "gold")] == ["", ""]

    topic.produce(
        [
            event("late", "17:10:00"),
            event("late", "17:10:00"),
            event("in an open window", "18:59:59.999"),
            event("at the watermark", "19:30:00"),
            event("after it", "19:30:00.001"),
            event("large", "17:10:00", size=100),
            event("rejected", "17:10:00", size=0),
            event("new", "20:31:00"),
        ]
    )
    done = job.run(text)
    assert job.rows("silver", "id") == [("after it",), ("first",), ("new",), ("newest",)]
    assert (done["silver"].late_rows, done["silver"].late_groups, done["silver"].late_letters) == (4, 0, 4)
    # Those of 16 to 18 and of 17 to 19 hours are groups; 18 to 20 is open still.
    assert (done["gold"].late_rows, done["gold"].late_groups, done["gold"].late_letters) == (0, 2, 4)

    def letters() -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for record in source(subscribe=f"{topic}.rejected", includeHeaders=True).collect():
            headers = {header.key: bytes(header.value).decode() for header in record.headers}
            if headers["kbroker.reason"] == "late: behind the watermark":
                assert headers["kbroker.watermark"] == "1767295800000"
                assert headers["kbroker.source"] == "events"
                assert headers["kbroker.topic"] == topic.name
                found[headers["kbroker.sink"], json.loads(record.value)["id"]] += 1
            else:
                assert json.loads(record.value)["id"] == "rejected"
        return found

    silver = {("silver", "late"): 2, ("silver", "in an open window"): 1, ("silver", "at the watermark"): 1}
    gold = {("gold", "late"): 2, ("gold", "in an open window"): 1, ("gold", "large"): 1}
    assert letters() == {**silver, **gold}

    # A run that was killed before it sent them has kept an older number.
    kept = job.directory / "state" / "silver" / "progress.json"
    progress = json.loads(kept.read_text())
    assert progress["late_handled"] == progress["batch"]
    kept.write_text(json.dumps({**progress, "late_handled": 0}))
    job.run(text)
    assert letters() == Counter(silver) + Counter(silver) + Counter(gold), (
        "those of gold were sent: not again"
    )
