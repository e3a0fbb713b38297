"""The voters of the metadata quorum (KIP-853): this broker, for ever.

A request to change them is checked as Kafka checks it and then refused as Kafka refuses it where
kraft.version is 0, the level of a quorum that cannot change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from kbroker.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection

    from kbroker.broker import Broker

_NO_ID = bytes(16)


def check_voter(broker: Broker, cluster_id: str | None, voter_id: int, directory_id: bytes) -> None:
    """Whether the request means this cluster and a voter."""
    own = broker.cluster.cluster_id
    if cluster_id is not None and cluster_id != own:
        raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"This is cluster {own}, not {cluster_id}.")
    if voter_id < 0 or directory_id == _NO_ID:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "A voter has an id that is not negative and a directory id."
        )


def check_endpoints(broker: Broker, listeners: Collection[str]) -> None:
    """Whether the voter can be reached by the name that controllers use for each other."""
    wanted = broker.settings["controller.listener.names"][0]
    if wanted not in listeners:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The voter has no endpoint for the listener {wanted}.")


def refuse_change() -> Never:
    raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "The quorum is this broker, and cannot change.")
