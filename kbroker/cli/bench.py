"""`kbroker bench`: how fast is this Kafka, as seen through kafka-python?

It uses a topic of its own, which is gone afterwards, Ctrl-C included. A Python client is the limit before
most brokers are: the numbers compare setups and brokers with each other, they are not a broker's maximum.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kbroker.cli import connection, offline
from kbroker.cli.output import add_output_options, print_json, print_table
from kbroker.exit_codes import OK, CommandFailed

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("bench", help="measure throughput and latency")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _action(actions, "produce", "write records as fast as possible", _produce, 100_000)
    _action(actions, "consume", "write records, then read them as fast as possible", _consume, 100_000)
    _action(actions, "latency", "write one record at a time and wait until it is read", _latency, 1000)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
    count: int,
) -> None:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ". " + _NOTE)
    parser.add_argument("-n", "--records", type=int, default=count, metavar="N", help=f"default {count}")
    parser.add_argument(
        "-s", "--size", type=int, default=1024, metavar="BYTES", help="of a value (default 1024)"
    )
    parser.add_argument("-p", "--partitions", type=int, default=1, metavar="N", help="default 1")
    parser.add_argument("-z", "--codec", choices=_CODECS, default="none", help="default none")
    parser.add_argument("--acks", choices=("0", "1", "all"), default="all", help="default all")
    parser.add_argument(
        "--batch", type=int, default=262144, metavar="BYTES", help="of a batch (default 262144)"
    )
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


_NOTE = "The client is kafka-python: the numbers compare brokers and setups, they are no broker's maximum."


@contextmanager
def _topic(arguments: argparse.Namespace) -> Iterator[str]:
    """A topic for one run."""
    if arguments.records < 1 or arguments.size < 1:
        raise CommandFailed("--records and --size must be above 0")
    name = f"kbroker-bench-{os.urandom(4).hex()}"
    with connection.admin(arguments) as client:
        client.create_topics({name: {"num_partitions": arguments.partitions}}, wait_for_metadata=True)
        try:
            yield name
        finally:
            client.delete_topics([name])


def _producer(arguments: argparse.Namespace, **configs: Any) -> Any:
    return connection.producer(
        arguments,
        compression_type=None if arguments.codec == "none" else arguments.codec,
        acks=arguments.acks if arguments.acks == "all" else int(arguments.acks),
        enable_idempotence=arguments.acks == "all",
        **configs,
    )


def _write(arguments: argparse.Namespace, topic: str) -> float:
    """Write all records; returns the seconds it took."""
    value = os.urandom(arguments.size)
    failures: list[Exception] = []
    with (
        _producer(arguments, batch_size=arguments.batch, linger_ms=5) as producer,
        offline.progress("writing", arguments.records * arguments.size) as progress,
    ):
        producer.partitions_for(topic)
        started = time.perf_counter()
        for number in range(arguments.records):
            producer.send(topic, value, partition=number % arguments.partitions).add_errback(failures.append)
            progress(arguments.size)
        producer.flush()
        took = time.perf_counter() - started
    if failures:
        raise failures[0]
    return took


def _produce(arguments: argparse.Namespace) -> int:
    with _topic(arguments) as topic:
        took = _write(arguments, topic)
    _report(arguments, _throughput(arguments, took))
    return OK


def _consume(arguments: argparse.Namespace) -> int:
    with _topic(arguments) as topic:
        _write(arguments, topic)
        with (
            connection.consumer(
                arguments,
                auto_offset_reset="earliest",
                max_partition_fetch_bytes=8 << 20,
                max_poll_records=5000,
            ) as consumer,
            offline.progress("reading", arguments.records * arguments.size) as progress,
        ):
            kafka = connection.kafka()
            consumer.assign([kafka.TopicPartition(topic, each) for each in range(arguments.partitions)])
            started = time.perf_counter()
            read = 0
            while read < arguments.records:
                polled = consumer.poll(timeout_ms=int(arguments.timeout * 1000))
                if not polled:
                    raise CommandFailed(f"only {read} of {arguments.records} records could be read")
                count = sum(map(len, polled.values()))
                progress(count * arguments.size)
                read += count
            took = time.perf_counter() - started
    _report(arguments, _throughput(arguments, took))
    return OK


def _latency(arguments: argparse.Namespace) -> int:
    value = os.urandom(arguments.size)
    acknowledged: list[float] = []
    seen: list[float] = []
    with (
        _topic(arguments) as topic,
        connection.consumer(arguments, auto_offset_reset="earliest", fetch_max_wait_ms=5000) as consumer,
        _producer(arguments, linger_ms=0) as producer,
        offline.progress("measuring", arguments.records) as progress,
    ):
        partition = connection.kafka().TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        for number in range(arguments.records + 1):
            started = time.perf_counter()
            producer.send(topic, value, partition=0).get(timeout=arguments.timeout)
            done = time.perf_counter()
            while not consumer.poll(timeout_ms=int(arguments.timeout * 1000)):
                raise CommandFailed("a record that was acknowledged could not be read in time")
            if number:  # the first one opens connections
                acknowledged.append(done - started)
                seen.append(time.perf_counter() - started)
            progress(1)
    _report(
        arguments,
        {
            "records": arguments.records,
            **_percentiles("acknowledged", acknowledged),
            **_percentiles("read", seen),
        },
    )
    return OK


def _throughput(arguments: argparse.Namespace, took: float) -> dict[str, Any]:
    return {
        "records": arguments.records,
        "seconds": round(took, 3),
        "records_per_second": round(arguments.records / took),
        "mib_per_second": round(arguments.records * arguments.size / took / (1 << 20), 2),
    }


def _percentiles(name: str, seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    at = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {
        f"{name}_{label}_ms": round(ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1000, 3)
        for label, share in at.items()
    }


def _report(arguments: argparse.Namespace, measured: dict[str, Any]) -> None:
    if arguments.json:
        print_json(measured)
    else:
        print_table(("WHAT", "VALUE"), [(name.replace("_", " "), value) for name, value in measured.items()])
