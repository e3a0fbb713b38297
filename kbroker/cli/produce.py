"""`kbroker produce`: write records that come as lines, as JSON or as whole files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import IO, Any, NamedTuple

from kbroker.cli import connection
from kbroker.cli.errors import explain
from kbroker.cli.output import note, plural
from kbroker.cli.times import timestamp_ms
from kbroker.exit_codes import OK, CommandFailed

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_LARGEST_REQUEST = 100 << 20  # the topic decides how large a record may be
_PATIENCE = 2  # seconds that what is on its way may take to arrive after Ctrl-C or an error
_UNFINISHED = 10_000  # records that may be on their way at once

_DESCRIPTION = """\
Write records to a topic. They come from standard input, or from --file: one per line, unless --whole or
--from-json says otherwise.

    echo hello | kbroker produce greetings
    kbroker produce orders -K : --file orders.txt          lines are key:value
    kbroker consume a --json | kbroker produce b --from-json"""


class _Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None = None
    timestamp: int | None = None


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "produce",
        help="write records",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("topic", metavar="TOPIC")
    source = parser.add_argument_group("where records come from")
    source.add_argument("--file", metavar="FILE", help="read this file, not standard input")
    form = source.add_mutually_exclusive_group()
    form.add_argument("--whole", action="store_true", help="all of the input is the value of one record")
    form.add_argument(
        "--from-json",
        action="store_true",
        help="lines are JSON objects with value, and if wanted key, headers, partition, timestamp",
    )
    form.add_argument("-K", "--key-separator", metavar="TEXT", help="lines are key, this, value")
    content = parser.add_argument_group("what records get")
    content.add_argument("-k", "--key", help="the key of every record that has none of its own")
    content.add_argument(
        "-H", "--header", metavar="NAME=VALUE", action="append", default=[], help="any number of times"
    )
    content.add_argument("-p", "--partition", type=int, help="instead of letting the key decide")
    content.add_argument(
        "--keep-partitions", action="store_true", help="records go to the partition that their JSON names"
    )
    content.add_argument("--timestamp", type=timestamp_ms, metavar="TIME", help="instead of now")
    content.add_argument("-Z", "--empty-is-null", action="store_true", help="an empty value is a tombstone")
    way = parser.add_argument_group("how they are sent")
    way.add_argument("-z", "--codec", choices=_CODECS, default="none", help="compression (default none)")
    way.add_argument("--rate", type=float, metavar="N", help="at most so many records per second")
    way.add_argument("--acks", choices=("0", "1", "all"), default="all", help="default all")
    parser.add_argument(
        "--json", action="store_true", help="print partition and offset of every record as JSON"
    )
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    headers = _headers(arguments.header)
    with ExitStack() as stack:
        source = stack.enter_context(open(arguments.file, "rb")) if arguments.file else sys.stdin.buffer
        producer = stack.enter_context(_producer(arguments))
        lines = _progress(source, arguments, stack)
        _check_topic(producer, arguments)
        sender = _Sender(producer, arguments, headers)
        try:
            _invite(arguments)
            for record in _records(source, lines, arguments):
                if sender.failure is not None:
                    break
                sender.send(record)
            producer.flush()
        except (Exception, KeyboardInterrupt) as error:
            sender.stop(error)
            raise
    return sender.finish()


def _invite(arguments: argparse.Namespace) -> None:
    """Who starts it in a terminal shall know that it waits."""
    if arguments.file or not sys.stdin.isatty():
        return
    form = "the value of one record" if arguments.whole else "records, one per line"
    if arguments.from_json:
        form = "records as JSON, one per line"
    elif arguments.key_separator:
        form += f" as key{arguments.key_separator}value"
    note(f"type {form}; Ctrl-D ends")


def _producer(arguments: argparse.Namespace) -> Any:
    codec = None if arguments.codec == "none" else arguments.codec
    if codec is not None and not getattr(connection.kafka().codec, f"has_{codec}")():
        package = {"snappy": "python-snappy", "zstd": "zstandard"}.get(codec, codec)
        raise CommandFailed(f"--codec {codec} needs a library that is not installed: pip install {package}")
    from kbroker.cli.record_serializer import RecordSerializer

    acks = arguments.acks if arguments.acks == "all" else int(arguments.acks)
    return connection.producer(
        arguments,
        acks=acks,
        compression_type=codec,
        # Records wait a moment for others to share a batch, unless somebody types them.
        linger_ms=0 if sys.stdin.isatty() and not arguments.file else 5,
        enable_idempotence=acks == "all",
        max_request_size=_LARGEST_REQUEST,
        value_serializer=RecordSerializer(),
    )


def _check_topic(producer: Any, arguments: argparse.Namespace) -> None:
    """Fail before the first record where there is no topic and the broker does not make it."""
    try:
        producer.partitions_for(arguments.topic)
    except connection.kafka().errors.KafkaTimeoutError as error:
        from kbroker.cli.advertised import diagnosis

        raise diagnosis(arguments) or CommandFailed(
            f"topic {arguments.topic} is not there after {arguments.timeout:g} s, and the broker does not "
            f"make it: 'kbroker topic create {arguments.topic}' does"
        ) from error


class _Sender:
    """Sends records, keeps the first failure, counts what arrived."""

    def __init__(
        self, producer: Any, arguments: argparse.Namespace, headers: list[tuple[str, bytes | None]]
    ) -> None:
        from kbroker.cli.record_serializer import Headers

        self._producer = producer
        self._empty_headers = Headers
        self._arguments = arguments
        self._headers = headers
        self._key = None if arguments.key is None else arguments.key.encode()
        self._started = time.monotonic()
        self._sent = 0
        self.delivered = 0
        self.failure: Exception | None = None

    def send(self, record: _Record) -> None:
        arguments = self._arguments
        if arguments.rate:
            time.sleep(max(0.0, self._started + self._sent / arguments.rate - time.monotonic()))
        value = None if arguments.empty_is_null and record.value == b"" else record.value
        try:
            future = self._producer.send(
                arguments.topic,
                value=(value, [*self._headers, *record.headers]),
                key=self._key if record.key is None else record.key,
                headers=self._empty_headers(),
                partition=record.partition if arguments.keep_partitions else arguments.partition,
                timestamp_ms=arguments.timestamp if record.timestamp is None else record.timestamp,
            )
        except (AssertionError, TypeError, ValueError) as error:
            raise CommandFailed(f"record {self._sent + 1} cannot be sent: {error}") from error
        future.add_callback(self._arrived)
        future.add_errback(self._failed)
        self._sent += 1
        if self._sent - self.delivered >= _UNFINISHED:
            self._producer.flush()

    def _arrived(self, metadata: Any) -> None:
        self.delivered += 1
        if self._arguments.json:
            sys.stdout.write(
                f'{{"topic": "{metadata.topic}", "partition": {metadata.partition}, '
                f'"offset": {metadata.offset}, "timestamp": {metadata.timestamp}}}\n'
            )

    def _failed(self, error: Exception) -> None:
        # Records that were only in a batch with a bad one fail, too, and do not say why.
        if self.failure is None or not hasattr(self.failure, "errno"):
            self.failure = error

    def stop(self, reason: BaseException) -> None:
        """End before the input does: what was read is sent, and told along with the reason."""
        with suppress(connection.kafka().errors.KafkaError):
            self._producer.flush(timeout=min(_PATIENCE, self._arguments.timeout))
        if isinstance(reason, KeyboardInterrupt):
            note(self._written())
        elif (explained := explain(reason, self._arguments)) is not None:
            raise CommandFailed(
                f"{explained}. {self._written()} before that", explained.exit_code
            ) from reason

    def finish(self) -> int:
        if self.failure is not None:
            explained = explain(self.failure, self._arguments) or CommandFailed(str(self.failure))
            raise CommandFailed(f"{explained}. {self._written()}", explained.exit_code)
        if not self._arguments.json:
            note(self._written())
        return OK

    def _written(self) -> str:
        of = "" if self.delivered == self._sent else f" of {self._sent:,}"
        return f"{plural(self.delivered, 'record')}{of} written to {self._arguments.topic}"


def _records(source: IO[bytes], lines: Iterator[bytes], arguments: argparse.Namespace) -> Iterator[_Record]:
    if arguments.whole:
        yield _Record(None, source.read(), [])
        return
    separator = arguments.key_separator.encode() if arguments.key_separator else None
    for number, line in enumerate(lines, 1):
        line = line.removesuffix(b"\n")
        if arguments.from_json:
            if line.strip():
                yield _from_json(line, number)
        elif separator is None:
            yield _Record(None, line, [])
        else:
            key, found, value = line.partition(separator)
            if not found:
                raise CommandFailed(f"line {number} has no {arguments.key_separator!r} between key and value")
            yield _Record(key, value, [])


def _from_json(line: bytes, number: int) -> _Record:
    import json

    from kbroker.cli.record_format import from_text

    try:
        fields = json.loads(line)
        if not isinstance(fields, dict) or "value" not in fields:
            raise ValueError("it is not an object with a value")
        headers = fields.get("headers") or []
        pairs = headers.items() if isinstance(headers, dict) else headers
        return _Record(
            from_text(fields.get("key")),
            from_text(fields["value"]),
            [(str(name), from_text(value)) for name, value in pairs],
            fields.get("partition"),
            fields.get("timestamp"),
        )
    except (ValueError, TypeError) as error:
        raise CommandFailed(f"line {number} is not a record in JSON: {error}") from error


def _headers(entries: list[str]) -> list[tuple[str, bytes | None]]:
    headers: list[tuple[str, bytes | None]] = []
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals:
            raise CommandFailed(f"a header is given as NAME=VALUE, not {entry!r}")
        headers.append((name, value.encode()))
    return headers


def _progress(source: IO[bytes], arguments: argparse.Namespace, stack: ExitStack) -> Iterator[bytes]:
    """The lines; while a file is read in a terminal, with a bar."""
    if not arguments.file or not sys.stderr.isatty() or arguments.whole:
        return iter(source)
    import os

    from rich.console import Console
    from rich.progress import Progress

    bar = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
    task = bar.add_task(arguments.topic, total=os.fstat(source.fileno()).st_size)

    def counted() -> Iterator[bytes]:
        for line in source:
            bar.advance(task, len(line))
            yield line

    return counted()
