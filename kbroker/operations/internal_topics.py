"""Topics that an application needs for itself and a broker makes for it, with the application's rights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.topics import create_topic
from kbroker.pending import Pending, join, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation
from kbroker.topics.creation import count_problem

if TYPE_CHECKING:
    from kbroker.requests.resources import Resources
    from kbroker.topics.creation import NewTopic


def create_internal_topics(
    resources: Resources, topics: Sequence[NewTopic]
) -> list[str] | Pending[list[str]]:
    """What went wrong, in words. One that may not be made keeps all from being made."""
    if not resources.may_cluster(AclOperation.CREATE):
        refused = [new.name for new in topics if not resources.may_topic(AclOperation.CREATE, new.name)]
        if refused:
            return [f"CREATE is not allowed on {', '.join(refused)}"]
    too_many = count_problem(resources.broker, (new.num_partitions for new in topics))
    if too_many is not None:
        return [str(too_many)]
    return join(
        [_created(resources, new) for new in topics],
        lambda problems: [problem for problem in problems if problem is not None],
    )


def _created(resources: Resources, new: NewTopic) -> str | Pending[str | None] | None:
    def failed(error: Exception) -> str | None:
        if isinstance(error, ApiError) and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return None  # another member's heartbeat is making it
        return f"{new.name}: {describe(error)[1]}"

    try:
        return mapped(create_topic(resources, new), lambda _: None, otherwise=failed)
    except Exception as error:
        return failed(error)
