"""Quotas, set by Kafka's protocol."""

from __future__ import annotations

from collections.abc import Mapping

from kbroker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from tests.support.raw_client import RawClient


def set_quotas(client: RawClient, entity: Mapping[str, str | None], **quotas: float | None) -> None:
    """``entity``: types and names; None for a name: the default. None for a quota: it is removed."""
    operations = [OpData(key, value or 0.0, value is None) for key, value in quotas.items()]
    entry = RequestEntryData([EntityData(*each) for each in entity.items()], operations)
    (answer,) = client.ask(AlterClientQuotasRequest([entry], False), 1).entries
    assert answer.error_code == 0, answer.error_message
