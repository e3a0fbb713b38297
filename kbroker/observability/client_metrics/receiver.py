"""What becomes of a push. Its values are kept for /metrics; it is stored and handed on where that is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.observability.client_metrics.last_values import LastValues
from kbroker.observability.protobuf import InvalidProtobuf
from kbroker.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kbroker.observability.client_metrics.forwarding import Forwarder
    from kbroker.requests.long_requests import Steps
    from kbroker.telemetry.clients import Push
    from kbroker.telemetry.files import TelemetryFiles


class Receiver:
    def __init__(self, values: LastValues, files: TelemetryFiles | None, forwarder: Forwarder | None) -> None:
        self.values = values
        self.forwarder = forwarder
        self._files = files
        self.pushes = 0
        self.pushed_bytes = 0

    def receive(self, push: Push) -> Steps[None]:
        if not push.metrics:
            self.values.prolong(push)
            return
        try:
            yield from self.values.take(push)
        except InvalidProtobuf as error:
            raise ApiError(ErrorCode.INVALID_RECORD) from error
        self.pushes += 1
        self.pushed_bytes += len(push.metrics)
        if self._files is not None:
            self._files.receive(push.client_instance_id, push.metrics)
        if self.forwarder is not None:
            self.forwarder.forward(push)

    def forget(self, client_instance_id: bytes) -> None:
        """It is not asked for metrics any more."""
        self.values.forget(client_instance_id)
