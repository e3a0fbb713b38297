"""Subscription by regular expression: RE2 syntax, matched in time linear in the name.

The whole topic name must match. RE2 has neither look-around nor back-references, so no pattern can be
catastrophic; a pattern whose automaton would be too large is refused like one that does not parse. The
library loads with the first pattern.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kbroker.coordinators.groups.errors import InvalidRegularExpression

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PATTERN_LENGTH = 32_767
_MAX_MEMORY_BYTES = 8 << 20


def validate_regex(regex: str) -> None:
    """Raises InvalidRegularExpression unless it is one."""
    _full_match(regex)


def matching_topics(regex: str, topics: Iterable[str]) -> frozenset[str]:
    full_match = _full_match(regex)
    return frozenset(topic for topic in topics if full_match(topic))


@lru_cache(maxsize=256)
def _full_match(regex: str) -> Callable[[str], Any]:
    import re2  # type: ignore[import-untyped]

    if len(regex) > MAX_PATTERN_LENGTH:
        raise InvalidRegularExpression(f"a SubscribedTopicRegex has at most {MAX_PATTERN_LENGTH} characters")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MAX_MEMORY_BYTES
    try:
        pattern = re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        raise InvalidRegularExpression(f"the SubscribedTopicRegex {regex} cannot be read: {reason}") from None
    full_match: Callable[[str], Any] = pattern.fullmatch
    return full_match
