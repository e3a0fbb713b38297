"""grpc.reflection, v1 and v1alpha: what can be called, for tools such as grpcurl. Everybody may ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.grpc.messages import file_named, file_with, message
from kbroker.grpc.statuses import Status

if TYPE_CHECKING:
    from kbroker.grpc.call import Call


async def server_reflection_info(call: Call) -> None:
    package = call.method.request.DESCRIPTOR.file.package
    response_class = message(f"{package}.ServerReflectionResponse")
    while (request := await call.receive()) is not None:
        response = response_class(valid_host=request.host, original_request=request)
        _answer(request, response)
        await call.send(response)


def _answer(request: Any, response: Any) -> None:
    from kbroker.grpc.table import SERVICES

    asked = request.WhichOneof("message_request")
    if asked == "list_services":
        for name in SERVICES:
            response.list_services_response.service.add(name=name)
        return
    try:
        if asked == "file_by_filename":
            found = file_named(request.file_by_filename)
        elif asked == "file_containing_symbol":
            found = file_with(request.file_containing_symbol)
        else:  # there are no extensions
            raise KeyError
    except KeyError:
        response.error_response.error_code = int(Status.NOT_FOUND)
        response.error_response.error_message = "There is no such declaration."
        return
    response.file_descriptor_response.file_descriptor_proto.extend(_with_dependencies(found))


def _with_dependencies(file: Any) -> list[bytes]:
    """The file first, then what it needs."""
    wanted, found = [file], {}
    while wanted:
        each = wanted.pop(0)
        if each.name not in found:
            found[each.name] = each.serialized_pb
            wanted.extend(each.dependencies)
    return [*found.values()]
