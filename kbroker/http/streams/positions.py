"""Where a stream goes on in each partition, and that as a short text: the id of a server-sent event.

    153,12,7~Zk9Q3a         the next offsets of partitions 0, 1 and 2
    3:153,7:12~Zk9Q3a       those of partitions 3 and 7

Behind the ~ stands which topic it is: one that is made anew by the same name begins anew. A text that a
client puts together by itself may leave that out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kbroker.http.problems import Problem
from kbroker.http.topics import topic_id_text
from kbroker.operations.topic_reader import MOST_PARTITIONS

if TYPE_CHECKING:
    from kbroker.topics.registry import Topic

_TAG_LENGTH = 6


def tag_of(topic: Topic) -> str:
    return topic_id_text(topic.topic_id)[:_TAG_LENGTH]


class Given(NamedTuple):
    """Positions that a client sends."""

    offsets: Mapping[int, int]
    tag: str
    """Empty: of whatever topic."""


class Positions:
    """Those of one stream."""

    def __init__(self, topic: Topic, offsets: Mapping[int, int]) -> None:
        self._tag = tag_of(topic)
        numbers = sorted(offsets)
        self._numbered = numbers != list(range(len(numbers)))
        self._items: dict[int, str] = {}
        for number in numbers:
            self.move(number, offsets[number])

    def move(self, partition: int, offset: int | str) -> None:
        """A partition that is new comes behind those that there are."""
        self._items[partition] = f"{partition}:{offset}" if self._numbered else str(offset)

    def __str__(self) -> str:
        return f"{','.join(self._items.values())}~{self._tag}"

    def around(self, partition: int) -> tuple[str, str]:
        """What stands before and behind the offset of a partition, which is to move now."""
        self.move(partition, "?")
        before, _, after = str(self).partition("?")
        return before, after


def parsed(text: str) -> Given:
    """Raises Problem."""
    listed, _, tag = text.partition("~")
    offsets: dict[int, int] = {}
    number = -1
    for item in listed.split(",", MOST_PARTITIONS):
        named, colon, offset = item.rpartition(":")
        number = _number(named, text, 10) if colon else number + 1
        if number in offsets:
            raise _malformed(text)
        offsets[number] = _number(offset, text, 18)
    if len(offsets) > MOST_PARTITIONS:
        raise _malformed(text)
    return Given(offsets, tag)


def _number(digits: str, text: str, longest: int) -> int:
    if not digits.isascii() or not digits.isdecimal() or len(digits) > longest:
        raise _malformed(text)
    return int(digits)


def _malformed(text: str) -> Problem:
    return Problem(
        400,
        "A Last-Event-ID has the next offset of each partition, such as 153,12 or 3:153,7:12, and what the "
        f"broker has put behind a ~. This is none: {text[:50]!r}.",
    )
