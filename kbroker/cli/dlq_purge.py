"""Deleting dead letters, as `kbroker dlq purge` does."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kbroker.cli import connection
from kbroker.cli.dlq_ledger import read_ledger
from kbroker.cli.dlq_letters import read, reader
from kbroker.cli.output import note, plural, print_rows, say
from kbroker.cli.topic import trim_targets, trimmed_topic
from kbroker.exit_codes import FAILED, OK, USAGE, CommandFailed


def purge(arguments: argparse.Namespace) -> int:
    make = connection.kafka().TopicPartition
    with connection.admin(arguments) as client:
        topic = trimmed_topic(client, arguments)
        bounds = connection.partition_offsets(client, [topic])
        targets = (
            _sent_back(arguments, topic, bounds)
            if arguments.replayed
            else trim_targets(client, arguments, topic)
        )
        number = sum(targets[key] - bounds[key][0] for key in targets)
        if not _agreed(arguments, number):
            note("nothing was deleted")
            return FAILED
        done = client.delete_records({make(*key): offset for key, offset in targets.items()})
    rows = [
        {
            "partition": each.partition,
            "deleted": done[each]["low_watermark"] - bounds[each.topic, each.partition][0],
            "log_start_offset": done[each]["low_watermark"],
        }
        for each in sorted(done)
    ]
    print_rows(arguments, rows, {"partition": "PARTITION", "deleted": "DELETED", "log_start_offset": "START"})
    return OK


def _sent_back(
    arguments: argparse.Namespace, topic: dict[str, Any], bounds: dict[tuple[str, int], tuple[int, int]]
) -> dict[tuple[str, int], int]:
    """Up to the first letter of each partition that was not sent back."""
    make = connection.kafka().TopicPartition
    targets = {}
    with reader(arguments) as consumer:
        ledger = read_ledger(consumer, topic["name"], str(topic.get("topic_id", "")))
        for key, (start, _) in bounds.items():
            targets[key] = start
            for each in read(consumer, [make(*key)]):
                if not ledger.has(each.record.partition, each.record.offset):
                    break
                targets[key] = each.record.offset + 1
    return targets


def _agreed(arguments: argparse.Namespace, number: int) -> bool:
    if arguments.yes or not number:
        return True
    asked = f"this deletes {plural(number, 'offset')} of {arguments.topic}"
    if not sys.stdin.isatty():
        raise CommandFailed(f"{asked}: write --yes if that is meant", USAGE)
    say(f"{asked}. Type yes to go on:")
    return sys.stdin.readline().strip().lower() == "yes"
