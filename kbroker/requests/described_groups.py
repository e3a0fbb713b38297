"""Groups by their ids, as ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe answer.

Each group is described, or refused, by itself, while the answer is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from kbroker.coordinators.groups.errors import GroupError, InvalidGroupId
from kbroker.errors import describe
from kbroker.protocol.errors import ApiError
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation, AclResourceType

if TYPE_CHECKING:
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.requests.resources import Resources


class Described(Protocol):
    error_code: int
    authorized_operations: int


D = TypeVar("D", bound=Described)


def described_groups(
    resources: Resources,
    group_ids: Sequence[str],
    described: Callable[[GroupCoordinator, str], D],
    refused: Callable[..., D],
    *,
    feature: str,
    with_authorized_operations: bool,
) -> list[D]:
    """`described` may raise errors of the group, which `refused` makes an entry of; `feature`: the one
    without which there are no such groups.
    """

    def one(group_id: str) -> D:
        try:
            resources.broker.features.require(feature, 1)
            if not group_id:
                raise InvalidGroupId
            group = described(resources.groups(group_id, AclOperation.DESCRIBE), group_id)
        except (ApiError, GroupError) as error:
            code, message = describe(error)
            return refused(group_id=group_id, error_code=code, error_message=message)
        if with_authorized_operations:
            group.authorized_operations = resources.authorized_operations(AclResourceType.GROUP, group_id)
        return group

    return lazily(group_ids, one)
