"""Topics by pattern: as shells write them (orders-*), or as a regular expression that begins with ^."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence

from kbroker.exit_codes import CommandFailed

_SIGNS = frozenset("*?[^")  # in no topic's name


def is_pattern(topic: str) -> bool:
    return not _SIGNS.isdisjoint(topic)


def as_regex(topics: Sequence[str]) -> str:
    """One regular expression, for re.match, of names and patterns."""
    return "|".join(f"(?:{_regex(topic)})" for topic in topics)


def _regex(topic: str) -> str:
    if not topic.startswith("^"):
        return fnmatch.translate(topic) if is_pattern(topic) else re.escape(topic) + r"\Z"
    try:
        re.compile(topic)
    except re.error as error:
        raise CommandFailed(f"{topic} is no regular expression: {error}") from error
    return topic


def expand(topics: Sequence[str], existing: Iterable[str]) -> list[str]:
    """The topics that are meant, each once; those that Kafka keeps for itself only if the pattern says __."""
    known = sorted(existing)
    found: dict[str, None] = {}
    for topic in topics:
        if not is_pattern(topic):
            found[topic] = None
            continue
        regex = re.compile(_regex(topic))
        internal = topic.removeprefix("^").startswith("__")
        matching = [name for name in known if regex.match(name) and (internal or not name.startswith("__"))]
        if not matching:
            raise CommandFailed(f"no topic matches {topic}: see 'kbroker topic list'")
        found |= dict.fromkeys(matching)
    return list(found)
