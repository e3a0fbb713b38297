"""Intents: what of a share partition is on its way to a dead-letter topic.

An intent is stored before the first dead letter is written, and goes when the records are archived. After a
crash it tells what is to be finished. There is one at most for a share partition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kbroker.coordinators.shares.records import Dead
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending


class Intent(NamedTuple):
    topic: str
    """The name of the topic that the records come from."""
    target_id: bytes
    target_partition: int
    log_end_offset: int
    """Of the dead-letter partition, when the intent was made: what it has led to lies behind it."""
    producer_id: int
    """Of nobody else, so that what it has led to is known by it."""
    sequence: int
    """Of the first dead letter."""
    copy_record: bool
    dead: Sequence[Dead]
    """In the order of offsets."""


Save = Callable[[Mapping[str, str | None]], Pending[None]]
"""Sets what has a value, removes what has none."""


class Intents:
    def __init__(self, save: Save, stored: Mapping[str, str]) -> None:
        """`stored`: what was saved."""
        self._save = save
        self.unfinished = {_key(key): _intent(value) for key, value in stored.items()}
        """What an earlier run of the broker has left behind."""

    def save(self, key: ShareKey, intent: Intent) -> Pending[None]:
        return self._save({_key_text(key): _text(intent)})

    def remove(self, key: ShareKey) -> Pending[None]:
        return self._save({_key_text(key): None})


def _key_text(key: ShareKey) -> str:
    return f"{key.topic_id.hex()}/{key.partition}/{key.group_id}"


def _key(text: str) -> ShareKey:
    topic_id, partition, group_id = text.split("/", 2)
    return ShareKey(group_id, bytes.fromhex(topic_id), int(partition))


def _text(intent: Intent) -> str:
    fields = intent._asdict() | {"target_id": intent.target_id.hex()}
    return json.dumps(fields, separators=(",", ":"))


def _intent(text: str) -> Intent:
    intent = Intent(**json.loads(text))
    dead = [Dead(*each) for each in intent.dead]
    return intent._replace(target_id=bytes.fromhex(str(intent.target_id)), dead=dead)
