"""What the topic for dead letters of a share group is called, and what it may be called.

The name of the topic may have {group} and {topic} in it, which no name of a topic can: so one setting of the
broker gives every group a topic of its own, or every topic one.
"""

from __future__ import annotations

import re

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9._-]")
_LONGEST_NAME = 249


def topic_name(template: str, group_id: str, topic: str) -> str:
    """The topic for the group's records of `topic`."""
    for placeholder, value in (("{group}", group_id), ("{topic}", topic)):
        template = template.replace(placeholder, _NOT_IN_NAMES.sub("_", value))
    return template[:_LONGEST_NAME]


class NoDeadLetterTopic(Exception):
    """Why records of a group cannot become dead letters.

    They are archived nevertheless, as in Kafka: they would hold up all that come behind them.
    """


def check_name(name: str, prefix: str) -> None:
    if name.startswith("__"):
        raise NoDeadLetterTopic(f"{name} begins with __, as internal topics do")
    if not name.startswith(prefix):
        raise NoDeadLetterTopic(
            f"{name} does not begin with {prefix}, as errors.deadletterqueue.topic.name.prefix wants it"
        )
