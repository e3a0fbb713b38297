"""Where the dead letters of a share group go: KIP-1191's configs, and what they mean.

The name of the topic may have {group} and {topic} in it, which no name of a topic can: so one setting of the
broker gives every group a topic of its own, or every topic one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9._-]")
_LONGEST_NAME = 249


@dataclass(frozen=True, slots=True)
class DeadLetterSettings:
    topic_name: str = ""
    """Empty: the group has no dead letters."""
    copy_record: bool = False
    """Whether a dead letter has key, value and headers of the record, or only says where it is."""
    auto_create_topics: bool = False
    topic_name_prefix: str = "dlq."

    def topic_for(self, group_id: str, topic: str) -> str | None:
        """The topic for a record of `topic`; None: there is none."""
        if not self.topic_name:
            return None
        name = self.topic_name
        for placeholder, value in (("{group}", group_id), ("{topic}", topic)):
            name = name.replace(placeholder, _NOT_IN_NAMES.sub("_", value))
        return name[:_LONGEST_NAME]


class NoDeadLetterTopic(Exception):
    """Why records of a group cannot become dead letters.

    They are archived nevertheless, as in Kafka: they would hold up all that come behind them.
    """


def check_name(name: str, settings: DeadLetterSettings) -> None:
    if name.startswith("__"):
        raise NoDeadLetterTopic(f"{name} begins with __, as internal topics do")
    if not name.startswith(settings.topic_name_prefix):
        raise NoDeadLetterTopic(
            f"{name} does not begin with {settings.topic_name_prefix}, "
            "as errors.deadletterqueue.topic.name.prefix wants it"
        )
