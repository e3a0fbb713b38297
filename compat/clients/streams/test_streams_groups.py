"""Kafka Streams with `group.protocol=streams` (KIP-1071): a stateful application that is killed, stopped,
started again, scaled out and in, with standbys, or whose broker is killed, and counts every word once;
kafka-streams-groups on it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from operator import le, lt
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.clients.streams.test_word_count import LINES, PARTITIONS, WORDS, counts, write
from compat.clients.streams.word_count import INPUT, OUTPUT, WordCount
from compat.harness.brokers import APACHE, SETTINGS, Server, new_kbroker, selected_brokers
from compat.harness.kafka import RealKafka
from compat.harness.tools import KafkaTools, ToolResult
from compat.harness.waiting import eventually

pytestmark = pytest.mark.java

SHORT_SESSIONS = {
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
}
GROUPS = "kafka-streams-groups"
KILLS, BURST = 3, 3 * LINES
Start = Callable[[str], WordCount]
Run = Callable[..., ToolResult]


@pytest.fixture(scope="module", params=selected_brokers())
def streams_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    settings = SETTINGS | SHORT_SESSIONS
    with RealKafka(settings) if request.param == APACHE else new_kbroker(settings) as server:
        yield server


@pytest.fixture
def application_id(streams_server: Server, unique: Callable[[str], str]) -> Iterator[str]:
    admin = AdminClient({"bootstrap.servers": streams_server.bootstrap})
    topics = [NewTopic(INPUT, PARTITIONS, 1), NewTopic(OUTPUT, PARTITIONS, 1)]
    for created in admin.create_topics(topics).values():
        created.result(30)
    yield unique("word-count")
    for deleted in admin.delete_topics([INPUT, OUTPUT]).values():
        deleted.result(30)


@pytest.fixture
def start(streams_server: Server, application_id: str, tmp_path: Path) -> Iterator[Start]:
    """start("a"): an instance of the application, of two threads."""
    started: list[WordCount] = []

    def start_one(name: str) -> WordCount:
        bootstrap = streams_server.bootstrap
        application = WordCount(bootstrap, application_id, tmp_path / name, protocol="streams")
        started.append(application)
        application.start()
        return application

    yield start_one
    for application in started:
        application.kill()


@pytest.fixture
def run(streams_server: Server, kafka_tools: KafkaTools) -> Run:
    def run_tool(*arguments: str, tool: str = GROUPS, ok: bool = True) -> ToolResult:
        result = kafka_tools.run(tool, "--bootstrap-server", streams_server.bootstrap, *arguments)
        assert (result.exit_code == 0) is ok, result
        return result

    return run_tool


@pytest.fixture
def lines() -> list[str]:
    chance = random.Random(1)
    return [" ".join(chance.choices(WORDS, k=5)) for _ in range(LINES)]


def each_once(lines: list[str]) -> dict[str, list[int]]:
    """Without a cache every change is written: each word's counts are 1, 2, 3 … without gap or repetition."""
    expected = Counter(word for line in lines for word in line.split())
    return {word: list(range(1, count + 1)) for word, count in expected.items()}


def wait_for_words(server: Server, words: int) -> None:
    def counted() -> int:
        return sum(max(each) for each in counts(server.bootstrap).values())

    eventually(counted, lambda total: total >= words, seconds=90)


def output_end(bootstrap: str) -> int:
    """How much is written to the output, be it committed or not; -1: the broker does not know yet."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "compat-reader"})) as consumer:
        partitions = [TopicPartition(OUTPUT, number) for number in range(PARTITIONS)]
        try:
            return sum(consumer.get_watermark_offsets(each, timeout=30)[1] for each in partitions)
        except KafkaException:
            return -1


def tasks(run: Run, group: str) -> list[tuple[int, int]]:
    """How many active and standby tasks each member has."""
    described = run("--describe", "--group", group, "--members").stdout
    members = [line for line in described.splitlines() if line.startswith(group)]
    return sorted((_count("ACTIVE", line), _count("STANDBY", line)) for line in members)


def _count(role: str, line: str) -> int:
    """A member's line ends with such as "ACTIVE: 0:[0,1]; 1:[0]; STANDBY: 1:[1]; "."""
    listed = re.search(rf"\b{role}: ([^A-Z]*)", line)
    if listed is None:
        return 0
    return sum(len(numbers.split(",")) for numbers in re.findall(r"\[([\d,]+)\]", listed[1]))


def test_words_are_counted_exactly_once_across_kills_and_restarts(
    streams_server: Server, start: Start, lines: list[str]
) -> None:
    bootstrap, half = streams_server.bootstrap, LINES // 2
    write(bootstrap, lines[:half])
    application = start("a")
    wait_for_words(streams_server, 1)
    application.kill()  # in the middle of whatever it does
    write(bootstrap, lines[half:])
    application.start()
    wait_for_words(streams_server, half * 5 + 1)
    application.stop()
    application.start()
    wait_for_words(streams_server, LINES * 5)
    application.stop()
    assert counts(bootstrap) == each_once(lines)


@pytest.mark.slow
def test_words_are_counted_exactly_once_while_the_broker_is_killed(
    streams_server: Server, start: Start, run: Run, application_id: str
) -> None:
    if streams_server.name == APACHE:
        pytest.skip(
            "Kafka is away for longer than transactions of the application last: it may be stuck then"
        )
    chance = random.Random(2)
    lines = [" ".join(chance.choices(WORDS, k=5)) for _ in range((KILLS + 1) * BURST)]
    application = start("a")
    with ThreadPoolExecutor() as aside:
        for kill in range(KILLS):
            burst = lines[kill * BURST : (kill + 1) * BURST]
            before = eventually(lambda: output_end(streams_server.bootstrap), partial(le, 0))
            written = aside.submit(write, streams_server.bootstrap, burst)
            eventually(lambda: output_end(streams_server.bootstrap), partial(lt, before), seconds=90)
            streams_server.kill()  # in the middle of the application's transactions
            streams_server.start_again()
            written.result(60)
    write(streams_server.bootstrap, lines[-BURST:])
    wait_for_words(streams_server, len(lines) * 5)
    assert application.is_running, application.output()
    assert counts(streams_server.bootstrap) == each_once(lines)
    # It is the group that it was.
    assert tasks(run, application_id) == [(2, 0), (2, 0)]
    application.stop()


def test_it_scales_out_and_in_with_standbys(
    streams_server: Server, start: Start, run: Run, application_id: str, lines: list[str]
) -> None:
    bootstrap, third = streams_server.bootstrap, LINES // 3
    run(
        *("--alter", "--entity-type", "groups", "--entity-name", application_id),
        *("--add-config", "streams.num.standby.replicas=1"),
        tool="kafka-configs",
    )
    write(bootstrap, lines[:third])
    start("a")
    wait_for_words(streams_server, third * 5)
    second = start("b")
    # Two subtopologies of two tasks, one of them with state: four tasks, and two standbys.
    eventually(
        lambda: tasks(run, application_id),
        lambda found: [active for active, _ in found] == [1] * 4 and sum(copies for _, copies in found) == 2,
        seconds=90,
    )
    write(bootstrap, lines[third : 2 * third])
    wait_for_words(streams_server, 2 * third * 5)
    second.kill()  # its tasks go to where the copies are
    write(bootstrap, lines[2 * third :])
    wait_for_words(streams_server, LINES * 5)
    eventually(lambda: tasks(run, application_id), lambda found: found == [(2, 0), (2, 0)], seconds=30)
    assert counts(bootstrap) == each_once(lines)


def test_kafka_streams_groups_lists_describes_resets_and_deletes(
    streams_server: Server, start: Start, run: Run, application_id: str, lines: list[str]
) -> None:
    write(streams_server.bootstrap, lines)
    application = start("a")
    wait_for_words(streams_server, LINES * 5)
    group = ("--group", application_id)
    assert application_id in run("--list").stdout
    assert "Stable" in run("--list", "--state", "Stable").stdout
    assert "Stable" in run("--describe", *group, "--state").stdout
    assert "Stable" in run("--describe", *group, "--state", "--verbose").stdout
    assert tasks(run, application_id) == [(2, 0), (2, 0)]
    assert "TARGET-ACTIVE" in run("--describe", *group, "--members", "--verbose").stdout
    described = run("--describe", *group, "--offsets").stdout
    assert INPUT in described
    assert INPUT in run("--describe", *group, "--offsets", "--verbose").stdout
    run("--delete", *group)  # says that it cannot: there are members
    assert application_id in run("--list").stdout
    application.stop()
    eventually(lambda: "Empty" in run("--describe", *group, "--state").stdout, seconds=30)
    plan = run("--reset-offsets", *group, "--input-topic", INPUT, "--to-earliest", "--dry-run").stdout
    assert INPUT in plan
    run("--reset-offsets", *group, "--all-input-topics", "--to-earliest", "--execute")
    run("--delete-offsets", *group, "--input-topic", INPUT)
    run("--delete", *group, "--delete-all-internal-topics")
    assert application_id not in run("--list").stdout
    left = run("--list", tool="kafka-topics").stdout.split()
    assert [topic for topic in left if topic.startswith(application_id)] == []
