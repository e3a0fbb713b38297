"""Quotas set and described, as tests say it."""

from __future__ import annotations

from collections.abc import Mapping

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from kbroker.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

from .conftest import Cluster

EXACT, DEFAULT, ANY = 0, 1, 2


def alter(cluster: Cluster, entity: Mapping[str, str | None], **values: float) -> ErrorCode:
    return _send(cluster, entity, [OpData(name, value) for name, value in values.items()])


def remove(cluster: Cluster, entity: Mapping[str, str | None], *names: str) -> ErrorCode:
    return _send(cluster, entity, [OpData(name, remove=True) for name in names])


def _send(cluster: Cluster, entity: Mapping[str, str | None], ops: list[OpData]) -> ErrorCode:
    parts = [EntityData(type_, name) for type_, name in entity.items()]
    answer: AlterClientQuotasResponse = cluster.send(
        AlterClientQuotasRequest([RequestEntryData(parts, ops)]), 1
    )
    (entry,) = answer.entries
    return ErrorCode(entry.error_code)


def ask(cluster: Cluster, *components: ComponentData, strict: bool = False) -> DescribeClientQuotasResponse:
    answer: DescribeClientQuotasResponse = cluster.send(
        DescribeClientQuotasRequest(list(components), strict), 1
    )
    return answer


def described(cluster: Cluster, **names: str) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    """The quotas of entities with these names, client_id for client-id."""
    components = [ComponentData(type_.replace("_", "-"), EXACT, name) for type_, name in names.items()]
    return found(ask(cluster, *components))


def found(answer: DescribeClientQuotasResponse) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    assert answer.error_code == ErrorCode.NONE
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries or ()
    ]
