"""The names of topics: Kafka's rules, and the names that are Kafka's own."""

from __future__ import annotations

import re

from kbroker.protocol.errors import ApiError, ErrorCode

MAX_NAME_LENGTH = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+\Z")

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"

# Kafka keeps its own state in topics of these names. kbroker does not, and lets nobody write them. What would
# be in the first two can be read (kbroker/internal_topics).
READABLE_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC))
INTERNAL_TOPICS = READABLE_TOPICS | {"__share_group_state"}


def check_name(name: str) -> None:
    """Kafka's rules for a topic's name."""
    if not name:
        problem = "it is empty"
    elif name in (".", ".."):
        problem = f"it is '{name}'"
    elif len(name) > MAX_NAME_LENGTH:
        problem = f"it is {len(name)} characters long, more than {MAX_NAME_LENGTH}"
    elif not _LEGAL_NAME.match(name):
        problem = "it has a character other than ASCII letters, digits, '.', '_' and '-'"
    else:
        return
    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"This cannot be a topic's name: {problem}.")
