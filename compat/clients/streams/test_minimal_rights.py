"""A Kafka Streams application that logs in over TLS and may do no more than it needs."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from compat.clients.rights import admin_of, allow
from compat.clients.streams.word_count import INPUT, OUTPUT, WordCount
from compat.harness.sasl import ADMIN, ALICE, SaslServer
from compat.harness.waiting import eventually

pytestmark = pytest.mark.java


def counted(server: SaslServer) -> dict[str, int]:
    """The last count of each word."""
    consumer = Consumer(
        {**server.librdkafka_configs(*ADMIN), "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(OUTPUT, 0, 0)])
    found: dict[str, int] = {}
    try:
        for message in consumer.consume(1000, 2):
            if message.error() is None:
                found[(message.key() or b"").decode()] = struct.unpack(">q", message.value() or b"")[0]
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_it_works_with_the_rights_it_needs_and_is_refused_without(
    guarded_server: SaslServer, unique: Callable[[str], str], tmp_path: Path, protocol: str
) -> None:
    application_id = unique("word-count")
    admin = admin_of(guarded_server)
    for created in admin.create_topics([NewTopic(INPUT, 1, 1), NewTopic(OUTPUT, 1, 1)]).values():
        created.result(30)
    producer = Producer(guarded_server.librdkafka_configs(*ADMIN))
    producer.produce(INPUT, b"to count or not to count")
    assert producer.flush(30) == 0
    login = guarded_server.java_configs(*ALICE)
    application = WordCount(guarded_server.bootstrap, application_id, tmp_path, login, protocol=protocol)
    application.start()
    try:
        eventually(application.output, lambda text: "AuthorizationException" in text, seconds=90)
    finally:
        application.kill()
    rights = {
        f"topic {INPUT}": "read",
        f"topic {OUTPUT}": "write",
        f"topic {application_id}*": "all",  # its repartition topics and changelogs
        f"group {application_id}": "read",
        f"transactional_id {application_id}*": "write describe",
    }
    allow(guarded_server, ALICE[0], rights)
    application.start()
    try:
        wanted = {"to": 2, "count": 2, "or": 1, "not": 1}
        eventually(lambda: counted(guarded_server), lambda found: found == wanted, seconds=90)
    finally:
        application.kill()
        for deleted in admin.delete_topics([INPUT, OUTPUT]).values():
            deleted.result(30)
