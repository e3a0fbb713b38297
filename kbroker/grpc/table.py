"""All that can be called: each rpc of kbroker.proto, gRPC's health checks and its reflection.

The handler of an rpc is the function of its name, written as Python does. One that has one request returns
its answer; one that streams sends its answers by itself.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from kbroker.grpc import consuming, fetching, groups, health, producing, reflection, topics
from kbroker.grpc.messages import SERVICE, message, service
from kbroker.quotas.entities import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE

if TYPE_CHECKING:
    from kbroker.grpc.call import Call

_QUOTAS = {
    "Publish": PRODUCER_BYTE_RATE,
    "Produce": PRODUCER_BYTE_RATE,
    "Fetch": CONSUMER_BYTE_RATE,
    "Consume": CONSUMER_BYTE_RATE,
}
_OURS = (producing, fetching, consuming, topics, groups)
_OTHERS: Mapping[str, ModuleType] = {
    "grpc.health.v1.Health": health,
    "grpc.reflection.v1.ServerReflection": reflection,
    "grpc.reflection.v1alpha.ServerReflection": reflection,
}
SERVICES = (SERVICE, *_OTHERS)


class Method(NamedTuple):
    name: str
    """For the audit log."""
    request: Any
    """The class of its messages."""
    client_streaming: bool
    server_streaming: bool
    one: Callable[[Call, Any], Awaitable[Any]] | None
    """Of a method with one request and one answer."""
    stream: Callable[[Call], Awaitable[None]] | None
    quota: str | None
    public: bool
    """Whether everybody may call it."""


def methods() -> dict[str, Method]:
    """By their paths."""
    found = {}
    for name in SERVICES:
        modules = _OURS if name == SERVICE else (_OTHERS[name],)
        for each in service(name).methods:
            handler = _handler(modules, each.name)
            streams = each.client_streaming or each.server_streaming
            found[f"/{name}/{each.name}"] = Method(
                f"{name}/{each.name}",
                message(each.input_type.full_name),
                each.client_streaming,
                each.server_streaming,
                None if streams else handler,
                handler if streams else None,
                _QUOTAS.get(each.name) if name == SERVICE else None,
                name != SERVICE,
            )
    return found


def _handler(modules: tuple[ModuleType, ...], name: str) -> Any:
    wanted = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    for module in modules:
        handler = getattr(module, wanted, None)
        if handler is not None:
            return handler
    raise AssertionError(f"nothing handles {name}")
