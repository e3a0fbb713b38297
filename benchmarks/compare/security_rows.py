"""What TLS, logins and ACLs cost: the same loads without any, and with each of them.

Each way has brokers of its own, with the same settings, certificate, users and ACLs; they are warmed up, and
stay for all loads of this way.
"""

from __future__ import annotations

import functools
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.compare import python_loads
from benchmarks.compare.brokers import Broker, Meter
from benchmarks.compare.log_rows import LARGE_BATCHES, consumer_perf, producer_perf
from benchmarks.compare.measures import Load, Numbers, Row, new_topic, remove_topics, warm_up
from benchmarks.raw import WINDOW, produce_frame
from compat.harness import sasl, tls
from compat.harness.connection import Connection
from compat.harness.waiting import eventually
from tests.support.certificates import Certificates

_PRODUCED_MB = 512
_CONSUMED_RECORDS = 2**20  # of 1 KiB
_TOPICS = 10  # of small requests, in turn
_NAME, _PASSWORD = sasl.ALICE
_MECHANISM = "SCRAM-SHA-256"
# Numbers of Kafka's protocol.
_TOPIC, _GROUP = 2, 3
_LITERAL, _PREFIXED = 3, 4
_READ, _WRITE, _CREATE, _DELETE, _DESCRIBE = 3, 4, 5, 6, 8
_ALLOW = 3
# A consumer that waits for its group gets warm meanwhile, and is faster then: here none waits.
_BOTH = {"group.initial.rebalance.delay.ms": "0"}


class Way(NamedTuple):
    """How clients come to a broker."""

    name: str
    settings: Callable[[], dict[str, str]]
    java: Callable[[], str]  # properties
    librdkafka: Callable[[], dict[str, str]]
    connect: Callable[[Broker], Connection]  # and log in
    set_up: Callable[[Broker], None] = lambda broker: None


# TLS


@functools.cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kbroker-bench-")  # removed at exit


@functools.cache
def _certificates() -> Certificates:
    return Certificates(Path(_directory().name))


@functools.cache
def _client_context() -> ssl.SSLContext:
    return _certificates().client_context()


def _tls_settings() -> dict[str, str]:
    return {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        **tls.store_settings(_certificates()),
    }


def _shake_hands(broker: Broker) -> Connection:
    return Connection(broker.bootstrap, tls=_client_context())


# logins


def _log_in(broker: Broker) -> Connection:
    client = sasl.Client(broker.bootstrap)
    answer = client.scram(_MECHANISM, _NAME, _PASSWORD)
    if answer == sasl.CLOSED or answer["ErrorCode"]:
        raise RuntimeError(f"the login failed: {answer}")
    return client.connection


def _scram_properties() -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'{module} required username="{_NAME}" password="{_PASSWORD}";'
    return f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={_MECHANISM}\nsasl.jaas.config={jaas}\n"


def _scram_configs() -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": _MECHANISM,
        "sasl.username": _NAME,
        "sasl.password": _PASSWORD,
    }


# ACLs


def _acl(kind: int, name: str, pattern: int, user: str, operation: int) -> dict[str, object]:
    return {
        "ResourceType": kind,
        "ResourceName": name,
        "ResourcePatternType": pattern,
        "Principal": f"User:{user}",
        "Host": "*",
        "Operation": operation,
        "PermissionType": _ALLOW,
    }


def _acls() -> list[dict[str, object]]:
    """What the user needs, and 300 of others, some of them about names like those of its topics."""
    own = [
        *(_acl(_TOPIC, "bench-", _PREFIXED, _NAME, each) for each in (_READ, _WRITE, _CREATE, _DELETE)),
        _acl(_GROUP, "group-", _PREFIXED, _NAME, _READ),
        _acl(_GROUP, "latency", _LITERAL, _NAME, _READ),
    ]
    for number in range(100):
        user = f"user-{number}"
        own += [
            _acl(_TOPIC, f"team-{number}-", _PREFIXED, user, _WRITE),
            _acl(_TOPIC, f"bench-{number}", _LITERAL, user, _READ),
            _acl(_GROUP, f"group-{number}", _LITERAL, user, _DESCRIBE),
        ]
    return own


def _make_users_and_acls(broker: Broker) -> None:
    sasl.make_users(broker.bootstrap)
    admin = sasl.logged_in(broker.bootstrap)
    acls = _acls()
    answer = admin.ask("CreateAcls", 3, {"Creations": acls})
    if {each["ErrorCode"] for each in answer["Results"]} != {0}:
        raise RuntimeError(f"no ACLs: {answer}")
    no_names = dict.fromkeys(("ResourceNameFilter", "PrincipalFilter", "HostFilter"))
    everything = dict.fromkeys(("ResourceTypeFilter", "PatternTypeFilter", "Operation", "PermissionType"), 1)

    def stored() -> int:
        resources = admin.ask("DescribeAcls", 3, {**no_names, **everything})["Resources"]
        return sum(len(resource["Acls"]) for resource in resources)

    eventually(lambda: stored() == len(acls))
    admin.close()


NONE = Way("none", dict, str, dict, lambda broker: Connection(broker.bootstrap))
TLS = Way(
    "TLS",
    _tls_settings,
    lambda: tls.java_properties(_certificates()),
    lambda: tls.librdkafka_configs(_certificates()),
    _shake_hands,
)
SCRAM = Way(
    "SCRAM",
    lambda: sasl.SETTINGS,
    _scram_properties,
    _scram_configs,
    _log_in,
    lambda broker: sasl.make_users(broker.bootstrap),
)
ACLS = SCRAM._replace(
    name="SCRAM and ACLs",
    settings=lambda: sasl.SETTINGS | sasl.WITH_ACLS,
    set_up=_make_users_and_acls,
)


_running: dict[str, tuple[Way, Broker]] = {}  # by the name of the shared broker that they are like


def stop_brokers() -> None:
    while _running:
        _, (_, broker) = _running.popitem()
        broker.__exit__(None, None, None)


def _secured(way: Way, broker: Broker, scale: float) -> Broker:
    running = _running.get(broker.name)
    if running is not None and running[0] is way:
        return running[1]
    if running is not None:
        del _running[broker.name]
        running[1].__exit__(None, None, None)
    secured = broker.another(way.settings() | _BOTH)
    secured.__enter__()
    _running[broker.name] = way, secured
    way.set_up(secured)
    properties = way.java()
    if properties:
        file = Path(_directory().name) / f"{way.name}.properties"
        file.write_text(properties)
        secured.properties_file = str(file)
        secured.librdkafka_configs = way.librdkafka()
    warm_up(secured, scale)
    return secured


# loads


def _small_requests(way: Way) -> Load:
    """A record of 100 bytes for one of ten topics at a time, acks=all, five requests on the way."""

    def run(broker: Broker, scale: float) -> Numbers:
        count = max(200, int(50_000 * scale))
        topics = [new_topic(broker) for _ in range(_TOPICS)]
        frames = [produce_frame(topic, 0, 200, acks=-1) for topic in topics]
        with way.connect(broker) as connection:
            warm = sum(_pump(connection, frames, count // 2))
            meter = Meter(broker)
            taken = sum(_pump(connection, frames, count))
            seconds, cpu_seconds = meter.wall_seconds, meter.cpu_seconds
        stored = sum(python_loads.end_offset(broker, topic) for topic in topics)
        if (warm, taken, stored) != (count // 2, count, count // 2 + count):
            raise RuntimeError(
                f"{broker.name} took {warm} of {count // 2} records, then {taken} of {count}; it has {stored}"
            )
        return {"requests_per_s": count / seconds, "cpu_us_per_request": cpu_seconds / count * 1e6}

    return run


def _pump(connection: Connection, frames: list[bytes], count: int) -> Iterator[bool]:
    """Whether they were taken, one by one."""
    for number in range(count + WINDOW):
        if number >= WINDOW:
            yield _is_taken(connection.receive_frame())
        if number < count:
            connection.send_bytes(frames[number % len(frames)])


def _is_taken(answer: bytes) -> bool:
    """By its error code, behind correlation id, tags, and the topic and partition that it is about."""
    name_bytes = answer[6] - 1
    return answer[12 + name_bytes : 14 + name_bytes] == bytes(2)


def _connections(way: Way, what: str) -> Load:
    """One after the other: connect, log in, ask, close."""

    def run(broker: Broker, scale: float) -> Numbers:
        count = max(50, int(2_000 * scale))
        for number in range(count + count // 2):
            if number == count // 2:  # what came before warmed up
                meter = Meter(broker)
            with way.connect(broker) as connection:
                connection.ask("ApiVersions", 0)
        return {
            f"{what}s_per_s": count / meter.wall_seconds,
            f"cpu_us_per_{what}": meter.cpu_seconds / count * 1e6,
        }

    return run


def _row(way: Way, name: str, load: Load) -> Row:
    def run(broker: Broker, scale: float) -> Numbers:
        secured = _secured(way, broker, scale)
        numbers = load(secured, scale)
        remove_topics(secured)
        return numbers

    return Row(f"security: {way.name}, {name}", run, own_broker=True)


def _rows(way: Way) -> list[Row]:
    return [
        _row(way, "producer-perf 1 KiB", producer_perf("", 1024, _PRODUCED_MB, **LARGE_BATCHES).run),
        _row(way, "consumer-perf 1 KiB", consumer_perf(_CONSUMED_RECORDS)),
        _row(way, "small requests", _small_requests(way)),
    ]


ROWS: tuple[Row, ...] = (
    *_rows(NONE),
    *_rows(TLS),
    _row(TLS, "handshakes", _connections(TLS, "handshake")),
    *_rows(SCRAM),
    _row(SCRAM, "logins", _connections(SCRAM, "login")),
    *_rows(ACLS),
)
