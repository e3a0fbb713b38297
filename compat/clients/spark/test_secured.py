"""Spark logs in over TLS, and may do no more than it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import NewTopic

from compat.clients.rights import admin_of, allow
from compat.harness.sasl import ALICE, SaslServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_it_writes_and_reads_what_it_may_and_nothing_else(
    spark: SparkSession, guarded_server: SaslServer, unique: Callable[[str], str]
) -> None:
    topic, forbidden = unique("allowed"), unique("forbidden")
    admin = admin_of(guarded_server)
    for created in admin.create_topics([NewTopic(name, 2, 1) for name in (topic, forbidden)]).values():
        created.result(30)
    allow(guarded_server, ALICE[0], {f"topic {topic}": "read write", "group spark-kafka*": "read"})
    login = {"bootstrap.servers": guarded_server.bootstrap, **guarded_server.java_configs(*ALICE)}
    options = {f"kafka.{name}": value for name, value in login.items()}
    frame = spark.range(100).selectExpr("cast(id as string) value")
    frame.write.format("kafka").options(**options).option("topic", topic).save()
    read = spark.read.format("kafka").options(**options).option("subscribe", topic).load()
    assert {row.v for row in read.selectExpr("cast(value as string) v").collect()} == {
        str(number) for number in range(100)
    }
    with pytest.raises(Exception, match=r"TopicAuthorizationException|Not authorized"):
        frame.write.format("kafka").options(**options).option("topic", forbidden).save()
