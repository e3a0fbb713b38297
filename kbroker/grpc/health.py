"""grpc.health.v1: whether the broker serves. Everybody may ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kbroker.grpc.messages import SERVICE, message
from kbroker.grpc.statuses import GrpcError, Status

if TYPE_CHECKING:
    from kbroker.grpc.call import Call

_RESPONSE, _LIST = message("grpc.health.v1.HealthCheckResponse"), "grpc.health.v1.HealthListResponse"
_SERVING, _NOT_SERVING, _UNKNOWN = 1, 2, 3
_KNOWN: Final = ("", SERVICE)
_LONG_SECONDS: Final = 3600.0


async def check(call: Call, request: Any) -> Any:
    if request.service not in _KNOWN:
        raise GrpcError(Status.NOT_FOUND, f"There is no service {request.service[:200]}.")
    return _RESPONSE(status=_status(call))


async def list(call: Call, request: Any) -> Any:  # gRPC's name
    statuses = {name: _RESPONSE(status=_status(call)) for name in _KNOWN}
    return message(_LIST)(statuses=statuses)


async def watch(call: Call) -> None:
    """Told at once, and when the broker stops."""
    request = await call.only()
    known = request.service in _KNOWN
    await call.send(_RESPONSE(status=_status(call) if known else _UNKNOWN))
    while not call.stopping:
        await call.until_changed(_LONG_SECONDS)
    if known:
        await call.send(_RESPONSE(status=_NOT_SERVING))


def _status(call: Call) -> int:
    return _NOT_SERVING if call.stopping else _SERVING
