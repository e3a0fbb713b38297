"""One Spark session for the run; both brokers set up so that retention and compaction happen at once.

The tests of this folder have brokers of their own: some kill them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from compat.clients.spark.jobs import Job
from compat.clients.spark.queries import Table, texts
from compat.clients.spark.topics import Topic
from compat.harness.broker import KBrokerProcess
from compat.harness.brokers import SETTINGS, Server
from compat.harness.kafka import RealKafka
from kbroker.pipeline.session import SHORT_LIVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).parent
BROKER_SETTINGS = {
    **SETTINGS,
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
    "message.max.bytes": "2097152",
    "auto.create.topics.enable": "false",
}
# Short jobs on two cores: few tasks.
SPARK_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # A query that waits for records says so at once, not every ten seconds.
    "spark.sql.streaming.noDataProgressEventInterval": "100",
}


# What the pipeline does beyond the connector is the same on both brokers: a short run takes kbroker for it.
PIPELINE_ON_BOTH = "test_bronze_silver_gold"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.spark)
            pipeline = item.path.name.startswith("test_pipeline") and PIPELINE_ON_BOTH not in item.name
            if pipeline and "apache-kafka" in item.nodeid:
                item.add_marker(pytest.mark.spark_full)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install -e '.[spark]'")
    from kbroker.pipeline.errors import JarUnavailable, SparkMissing
    from kbroker.pipeline.session import create_session

    try:
        session = create_session("compat", SPARK_SETTINGS)
    except (SparkMissing, JarUnavailable) as error:
        pytest.skip(str(error))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kbroker_server() -> Iterator[KBrokerProcess]:
    with KBrokerProcess(BROKER_SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def apache_kafka_server() -> Iterator[RealKafka]:
    with RealKafka(BROKER_SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_server(request: pytest.FixtureRequest) -> Server:
    """One of the two above. A fixture of its own: the other suites' one keeps what it was given first."""
    name = "kbroker_server" if request.param == "kbroker" else "apache_kafka_server"
    server: Server = request.getfixturevalue(name)
    return server


@pytest.fixture(scope="session")
def admin_of() -> Callable[[Server], AdminClient]:
    """admin_of(server): one client per broker for the whole run."""
    return cache(lambda server: AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0}))


@pytest.fixture
def new_topic(
    kafka_server: Server, admin_of: Callable[[Server], AdminClient], unique: Callable[[str], str]
) -> Callable[..., Topic]:
    """new_topic(partitions=1, name=None, **configs with _ for .)"""

    def create(partitions: int = 1, name: str | None = None, **configs: str) -> Topic:
        topic = Topic(name or unique("spark"), kafka_server.bootstrap, admin_of(kafka_server))
        topic.create(partitions, {key.replace("_", "."): value for key, value in configs.items()})
        return topic

    return create


@pytest.fixture
def source(spark: SparkSession, kafka_server: Server) -> Callable[..., DataFrame]:
    """source(subscribe="t", **options of the connector): a batch read"""

    def read(**options: Any) -> DataFrame:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka_server.bootstrap)
        return reader.options(**texts(options)).load()

    return read


@pytest.fixture
def stream(spark: SparkSession, kafka_server: Server) -> Callable[..., DataFrame]:
    """stream(subscribe="t", **options of the connector): a streaming read from the earliest offset"""

    def read(**options: Any) -> DataFrame:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka_server.bootstrap)
        return reader.options(**texts({"startingOffsets": "earliest", **options})).load()

    return read


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path)


@pytest.fixture
def job(spark: SparkSession, kafka_server: Server, tmp_path: Path) -> Job:
    return Job(spark, kafka_server, tmp_path)


@pytest.fixture
def running() -> Iterator[Callable[[Any], Any]]:
    """running(query): stopped when the test ends"""
    queries: list[Any] = []

    def keep(query: Any) -> Any:
        queries.append(query)
        return query

    yield keep
    for query in queries:
        query.stop()
