"""How commands reach a Kafka: the options they share, and kafka-python's clients made from them."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kbroker import kafka_python
from kbroker.cli.errors import unreachable
from kbroker.exit_codes import UNREACHABLE, USAGE, CommandFailed

DEFAULT = "127.0.0.1:9092"
VARIABLE = "KBROKER_BOOTSTRAP"
_CLIENT_ID = "kbroker-cli"
_VISIBLE_SECONDS = 5

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group("connection")
    options.add_argument(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT",
        default=os.environ.get(VARIABLE) or DEFAULT,
        help=f"where the broker is, several separated by commas (default ${VARIABLE}, else {DEFAULT})",
    )
    options.add_argument(  # Kafka's name for it
        "--bootstrap-server", dest="bootstrap", default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )
    options.add_argument(
        "-X",
        dest="client_configs",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a config of the client, such as security.protocol=SASL_PLAINTEXT; any number of times",
    )
    options.add_argument(
        "--command-config",
        metavar="FILE",
        help="configs of the client as Kafka's own tools take them: security.protocol, ssl.* and sasl.* of a "
        "properties file",
    )
    options.add_argument(
        "--timeout",
        type=float,
        default=10,
        metavar="SECONDS",
        help="how long to wait for an answer (default 10)",
    )


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    """host:port, several separated by commas; the port may be missing, an IPv6 host stands in brackets."""
    found = []
    for entry in filter(None, (part.strip() for part in bootstrap.split(","))):
        host, colon, port = entry.rpartition(":")
        if not colon or entry.endswith("]"):
            host, port = entry, "9092"
        if not port.isdecimal() or not host:
            raise CommandFailed(f"{entry} is not an address: write HOST:PORT, such as {DEFAULT}")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise CommandFailed(f"no address: write -b HOST:PORT, such as -b {DEFAULT}")
    return found


def check_reachable(arguments: argparse.Namespace) -> None:
    """Fail at once where nobody listens: the clients would try for as long as they may."""
    reason: object = ""
    tls = tls_context(arguments)
    for address in addresses(arguments.bootstrap):
        try:
            with socket.create_connection(address, timeout=arguments.timeout) as plain:
                if tls is not None:
                    _shake_hands(plain, tls, address, arguments)
                return
        except TimeoutError:
            reason = f"no answer within {arguments.timeout:g} s"
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
    raise unreachable(arguments.bootstrap, reason)


def _shake_hands(
    plain: socket.socket, tls: Any, address: tuple[str, int], arguments: argparse.Namespace
) -> None:
    import ssl

    from kbroker.cli.advertised import diagnosis

    where = f"{address[0]}:{address[1]}"
    try:
        tls.wrap_socket(plain, server_hostname=address[0]).close()
    except ssl.SSLCertVerificationError as error:
        raise CommandFailed(
            f"{where}: the broker's certificate is not accepted: {error.verify_message}. The authority to "
            "trust goes into -X ssl.ca.location=FILE, or ssl.truststore.location of --command-config",
            UNREACHABLE,
        ) from None
    except (ssl.SSLError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise diagnosis(arguments) or CommandFailed(
            f"{where} does not speak TLS as security.protocol asks ({reason}): name the port of another "
            "listener, or another security.protocol",
            UNREACHABLE,
        ) from None


def tls_context(arguments: argparse.Namespace) -> Any:
    """What to wrap sockets with; None where they stay plain."""
    return client_configs(arguments).get("ssl_context")


def client_configs(arguments: argparse.Namespace) -> dict[str, Any]:
    """What kafka-python's clients are told."""
    configs: dict[str, Any] = {
        "bootstrap_servers": [f"{host}:{port}" for host, port in addresses(arguments.bootstrap)],
        "client_id": _CLIENT_ID,
        "bootstrap_timeout_ms": int(arguments.timeout * 1000),
    }
    file = getattr(arguments, "command_config", None)
    if not arguments.client_configs and file is None:
        return configs
    from kbroker.cli import client_properties

    given = {} if file is None else client_properties.read(file)
    for entry in arguments.client_configs:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise CommandFailed(f"-X takes NAME=VALUE, not {entry!r}", USAGE)
        given[name.strip().replace("_", ".").replace("-", ".")] = value
    protocol = given.get("security.protocol", "PLAINTEXT")
    if protocol.upper() not in _PROTOCOLS:
        raise CommandFailed(f"security.protocol={protocol}: it is one of {', '.join(_PROTOCOLS)}", USAGE)
    return configs | client_properties.translated(given)


def is_plaintext(arguments: argparse.Namespace) -> bool:
    return bool(client_configs(arguments).get("security_protocol", "PLAINTEXT") == "PLAINTEXT")


def logs_in(arguments: argparse.Namespace) -> bool:
    return str(client_configs(arguments).get("security_protocol", "")).startswith("SASL_")


def kafka() -> Any:
    """kafka-python, whose log is silent: what matters is raised, and explained in a line."""
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    logging.getLogger("kafka").propagate = False
    return kafka_python.load()


def _made(client: Any, configs: dict[str, Any]) -> Any:
    """A client with configs that it knows."""
    for name in configs:
        if name not in client.DEFAULT_CONFIG:
            from kbroker.cli.suggestions import did_you_mean

            raise CommandFailed(
                f"-X {name}: kafka-python's {client.__name__} has no such config"
                f"{did_you_mean(name, client.DEFAULT_CONFIG)}",
                USAGE,
            )
    return client(**configs)


@contextmanager
def admin(arguments: argparse.Namespace) -> Iterator[Any]:
    """A KafkaAdminClient."""
    check_reachable(arguments)
    client = _made(
        kafka().KafkaAdminClient,
        {"request_timeout_ms": int(arguments.timeout * 1000), **client_configs(arguments)},
    )
    try:
        yield client
    finally:
        client.close()


@contextmanager
def consumer(arguments: argparse.Namespace, **configs: Any) -> Iterator[Any]:
    """A KafkaConsumer; it never creates topics."""
    check_reachable(arguments)
    settings = {"allow_auto_create_topics": False, "enable_auto_commit": False, **configs}
    client = _made(kafka().KafkaConsumer, {**settings, **client_configs(arguments)})
    try:
        yield client
    finally:
        client.close(autocommit=False)


@contextmanager
def producer(arguments: argparse.Namespace, **configs: Any) -> Iterator[Any]:
    """A KafkaProducer; leaving it waits for what was sent, unless by an error."""
    check_reachable(arguments)
    client = _made(
        kafka().KafkaProducer,
        {"max_block_ms": int(arguments.timeout * 1000), **configs, **client_configs(arguments)},
    )
    try:
        yield client
    except BaseException:
        with suppress(Exception):  # that not everything was sent is no news now
            client.close(timeout=2)
        raise
    client.close()


def topic_metadata(client: Any, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """What a KafkaAdminClient tells of topics, sorted; an unknown one is an error."""
    from kbroker.cli.errors import refused

    topics: list[dict[str, Any]] = client.describe_topics(None if names is None else list(names))
    for topic in topics:
        if topic["error_code"]:
            raise refused(f"topic {topic['name']}", topic["error_code"])
        topic["partitions"].sort(key=lambda partition: partition["partition_index"])
    return sorted(topics, key=lambda topic: str(topic["name"]))


def partition_offsets(
    client: Any, topics: Sequence[dict[str, Any]]
) -> dict[tuple[str, int], tuple[int, int]]:
    """Log start and end offset of every partition of the described topics."""
    module = kafka()
    partitions = [
        module.TopicPartition(topic["name"], partition["partition_index"])
        for topic in topics
        for partition in topic["partitions"]
    ]
    if not partitions:
        return {}
    starts = client.list_partition_offsets(dict.fromkeys(partitions, module.admin.OffsetSpec.EARLIEST))
    ends = client.list_partition_offsets(dict.fromkeys(partitions, module.admin.OffsetSpec.LATEST))
    return {(each.topic, each.partition): (starts[each].offset, ends[each].offset) for each in partitions}


def until_visible(client: Any, check: Callable[[Any], bool], arguments: argparse.Namespace) -> None:
    """Wait until the cluster's metadata shows a change: that may lag behind its acknowledgement."""
    deadline = time.monotonic() + min(arguments.timeout, _VISIBLE_SECONDS)
    while not check(client) and time.monotonic() < deadline:
        time.sleep(0.05)
