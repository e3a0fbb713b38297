r"""`kbroker consume`: read records, from where and for how long one likes.

Without a group nothing is committed anywhere. With one, what was printed is committed: when another read
begins, and at the end, Ctrl-C included.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import Any

from kbroker.cli import connection, topic_patterns
from kbroker.cli.output import note
from kbroker.cli.times import HELP, timestamp_ms
from kbroker.exit_codes import OK, CommandFailed

_POLL_MS = 200
_GLANCE_MS = 50

_DESCRIPTION = r"""Read records of topics and print them. It stops at the end, unless --follow is given.

    kbroker consume orders                                   values, from the beginning
    kbroker consume orders -o -10 --follow                   the last 10, then what comes
    kbroker consume orders -o @2h                            those of the last two hours
    kbroker consume orders -g billing                        as a member of a group
    kbroker consume 'orders-*' '^click'                      topics by pattern, or by regular expression
    kbroker consume orders -f '%p %o %T %k %s\n'             partition, offset, timestamp, key, value

In a format, as in kcat: %s value, %S its length, %R its length as 4 bytes, %k key, %K its length, %h headers,
%T timestamp, %t topic, %p partition, %o offset, %% a percent sign; \n \r \t \\ \0 \xNN."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "consume",
        help="read records",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "topics", nargs="+", metavar="TOPIC", help="a name, a pattern such as 'a-*', or ^ and a regex"
    )
    where = parser.add_argument_group("which records")
    where.add_argument(
        "-o",
        "--offset",
        type=_offset,
        metavar="WHERE",
        help="beginning, end, an offset, -N for the last N of each partition, or @TIME "
        f"({HELP.replace('%', '%%')}). Default: beginning; with -g, where the group is",
    )
    where.add_argument("-p", "--partition", type=int, action="append", help="only this; any number of times")
    where.add_argument("-g", "--group", help="read as a member of this consumer group, and commit")
    where.add_argument("-n", "--count", type=int, metavar="N", help="stop after N records")
    where.add_argument("-F", "--follow", action="store_true", help="at the end, wait for more")
    where.add_argument(
        "--read-uncommitted", action="store_true", help="also records of open or aborted transactions"
    )
    look = parser.add_mutually_exclusive_group()
    look.add_argument("-f", "--format", default="%s\\n", help=r"how a record is printed (default '%%s\n')")
    look.add_argument("--json", action="store_true", help="a JSON object per record and line")
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def _offset(text: str) -> tuple[str, int]:
    if text in ("beginning", "start", "earliest"):
        return "beginning", 0
    if text in ("end", "latest"):
        return "end", 0
    if text.startswith("@"):
        return "time", timestamp_ms(text[1:])
    if text.lstrip("-").isdecimal():
        number = int(text)
        return ("last", -number) if number < 0 else ("offset", number)
    raise argparse.ArgumentTypeError(f"{text!r}: write beginning, end, an offset, -N or @TIME")


def run(arguments: argparse.Namespace) -> int:
    from kbroker.cli.record_format import as_json, compile_format

    write = as_json if arguments.json else compile_format(arguments.format)
    if arguments.group and arguments.partition:
        raise CommandFailed("-g lets the group decide about partitions: leave out -p")
    with connection.consumer(
        arguments,
        group_id=arguments.group,
        auto_offset_reset="earliest",
        isolation_level="read_uncommitted" if arguments.read_uncommitted else "read_committed",
        max_poll_records=min(arguments.count or 500, 500),
        # Who stops at the end does not want to wait there.
        fetch_max_wait_ms=500 if arguments.follow else 50,
    ) as consumer:
        reading = _Reading(consumer, arguments)
        try:
            reading.start()
            for record in reading.records():
                sys.stdout.buffer.write(write(record))
                if arguments.follow:
                    sys.stdout.buffer.flush()
            sys.stdout.buffer.flush()
        finally:
            reading.commit()
    return OK


class _Reading:
    """Where a consumer begins, and when it has read enough."""

    def __init__(self, consumer: Any, arguments: argparse.Namespace) -> None:
        self._consumer = consumer
        self._arguments = arguments
        self._kafka = connection.kafka()
        self._ends: dict[Any, int] = {}
        self._awaited: dict[Any, int] = {}  # the offset to begin at, of each partition that ends before it
        self._printed: dict[Any, int] = {}  # the next offset of each partition that something was printed of

    def start(self) -> None:
        partitions = self._partitions()
        if self._arguments.group:
            self._subscribe()
            self._await_assignment()
            if self._arguments.offset is not None:
                self._seek(list(self._consumer.assignment()))
        else:
            self._consumer.assign(partitions)
            self._seek(partitions)

    def _subscribe(self) -> None:
        """By pattern also to topics that come later."""
        topics = self._arguments.topics
        if any(map(topic_patterns.is_pattern, topics)):
            self._consumer.subscribe(pattern=topic_patterns.as_regex(topics))
        else:
            self._consumer.subscribe(topics)
        # A leader that learns its topics' partitions only after it joined would join again, and kafka-python
        # 3.0.12 may forget that join and stop its heartbeats (compat/clients/kafka_python/test_groups.py).
        self._consumer.topics()

    def _partitions(self) -> list[Any]:
        """The partitions of the topics; an error for what does not exist."""
        chosen = []
        topics = self._arguments.topics
        if any(map(topic_patterns.is_pattern, topics)):
            topics = topic_patterns.expand(topics, self._consumer.topics())
        for topic in topics:
            known = self._consumer.partitions_for_topic(topic)
            if not known:
                raise CommandFailed(
                    f"there is no topic {topic}: see 'kbroker topic list', or 'kbroker topic create {topic}'"
                )
            wanted = self._arguments.partition or sorted(known)
            if missing := set(wanted) - set(known):
                raise CommandFailed(f"topic {topic} has no partition {min(missing)}, only 0 to {max(known)}")
            chosen += [self._kafka.TopicPartition(topic, partition) for partition in wanted]
        return chosen

    def _await_assignment(self) -> None:
        """Join the group. Another member may hold every partition: then only --follow has a point."""
        deadline = time.monotonic() + self._arguments.timeout
        while not self._consumer.assignment():
            # What this brings is read again: it does not move the positions.
            self._consumer.poll(timeout_ms=100, max_records=1, update_offsets=False)
            if time.monotonic() > deadline and not self._arguments.follow:
                raise CommandFailed(
                    f"group {self._arguments.group} gave no partition within {self._arguments.timeout:g} s: "
                    "'kbroker group describe' shows its members; --follow waits"
                )

    def _seek(self, partitions: list[Any]) -> None:
        kind, number = self._arguments.offset or ("beginning", 0)
        if kind == "beginning":
            self._consumer.seek_to_beginning(*partitions)
        elif kind == "end":
            self._consumer.seek_to_end(*partitions)
        elif kind == "offset":
            self._seek_offset(partitions, number)
        elif kind == "last":
            starts = self._consumer.beginning_offsets(partitions)
            for partition, end in self._consumer.end_offsets(partitions).items():
                self._consumer.seek(partition, max(starts[partition], end - number))
        else:
            found = self._consumer.offsets_for_times(dict.fromkeys(partitions, number))
            ends = self._consumer.end_offsets(partitions)
            for partition in partitions:
                at = found.get(partition)
                self._consumer.seek(partition, at.offset if at is not None else ends[partition])

    def _seek_offset(self, partitions: list[Any], offset: int) -> None:
        """A consumer that is sent beyond the end of a log begins at its start: never let it."""
        ends = self._consumer.end_offsets(partitions)
        beyond = [partition for partition in partitions if offset > ends[partition]]
        for partition in beyond:
            where = f"partition {partition.partition} of {partition.topic} ends at offset {ends[partition]}"
            if self._arguments.follow:
                note(f"kbroker: {where}: waiting for offset {offset}")
            elif len(beyond) == len(partitions):
                raise CommandFailed(f"{where}, before {offset}: name a lower --offset, or wait with --follow")
            else:
                note(f"kbroker: {where}, before {offset}")
            self._awaited[partition] = offset
        for partition in partitions:
            self._consumer.seek(partition, min(offset, ends[partition]))

    def records(self) -> Any:
        left = self._arguments.count
        while left is None or left > 0:
            polled = self._consumer.poll(
                timeout_ms=_POLL_MS if self._arguments.follow else _GLANCE_MS,
                max_records=left and min(left, 500),
            )
            for partition, records in polled.items():
                for record in records:
                    if record.offset < self._awaited.get(partition, 0):
                        continue
                    self._printed[partition] = record.offset + 1
                    yield record
                    if left is not None:
                        left -= 1
            if polled:
                self.commit(wait=False)
            if not self._arguments.follow and self._at_end():
                return

    def _at_end(self) -> bool:
        """Whether the positions have reached the ends that were there when the first was looked at."""
        assigned = self._consumer.assignment()
        missing = [partition for partition in assigned if partition not in self._ends]
        if missing:
            self._ends.update(self._consumer.end_offsets(missing))
        return all(self._consumer.position(partition) >= self._ends[partition] for partition in assigned)

    def commit(self, *, wait: bool = True) -> None:
        """Commit what was printed, if there is a group."""
        if not self._arguments.group or not self._printed:
            return
        offsets = {
            partition: self._kafka.structs.OffsetAndMetadata(offset, "", -1)
            for partition, offset in self._printed.items()
        }
        self._printed = {}
        if not wait:
            self._consumer.commit_async(offsets)
            return
        # Another member may have been given the partitions meanwhile: it will read those records again.
        with contextlib.suppress(self._kafka.errors.CommitFailedError):
            self._consumer.commit(offsets)
