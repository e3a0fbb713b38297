"""The messages of the gRPC API, made of the declarations in kbroker.proto.

They live in a pool of their own: whoever uses the same names in this process, as its clients do, is not in
the way.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pool, message_factory

from kbroker.grpc.descriptors import FILES

SERVICE: Final = "kbroker.v1.Kbroker"

_pool: Any = descriptor_pool
_factory: Any = message_factory
_POOL: Any = _pool.DescriptorPool()
for _file in FILES:
    _POOL.AddSerializedFile(_file)


def message(name: str) -> Any:
    """The class of the messages with this full name."""
    return _factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


def ours(name: str) -> Any:
    return message(f"kbroker.v1.{name}")


def service(name: str) -> Any:
    return _POOL.FindServiceByName(name)


def file_with(symbol: str) -> Any:
    """The declarations of the file that has this. KeyError: there is none."""
    try:
        return _POOL.FindFileContainingSymbol(symbol)
    except KeyError:  # methods are not found by themselves
        owner, _, method = symbol.rpartition(".")
        found = service(owner)
        if method not in found.methods_by_name:
            raise
        return found.file


def file_named(name: str) -> Any:
    """KeyError: there is none."""
    return _POOL.FindFileByName(name)
