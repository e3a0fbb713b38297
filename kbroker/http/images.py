"""Images of the data directory, of which `kbroker backup` makes copies. Only their place is told by HTTP:
they are read where the data directory is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.http.answers import json_answer, no_content
from kbroker.http.endpoint import INTEGER, STRING, Answer, Endpoint, Parameter, Schema, json_answer_of
from kbroker.http.problems import Problem
from kbroker.network.awaiting import settled
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.operations.images import Image, Images


async def make(request: HttpRequest) -> Response:
    images = _images(request)
    if request.broker.settings["kbroker.in.memory"]:
        raise Problem(409, "There is nothing to copy: this broker keeps everything in memory.")
    image = await settled(images.make())
    return json_answer(_document(image), 201)


async def list_all(request: HttpRequest) -> Response:
    return json_answer({"images": [_document(image) for image in _images(request).all()]})


async def remove(request: HttpRequest) -> Response:
    await settled(_images(request).remove(request.path["image"]))
    return no_content()


def _images(request: HttpRequest) -> Images:
    """For who may alter the cluster: images hold back room."""
    return request.resources.images(AclOperation.ALTER)


def _document(image: Image) -> dict[str, Any]:
    return {
        "id": image.image_id,
        "path": image.path,
        "timeMs": image.time_ms,
        "partitions": image.partitions,
        "removedMs": image.removed_ms,
    }


_MEMBERS: dict[str, Schema] = {
    "id": STRING,
    "path": {"type": "string", "description": "Its directory, on the machine of the broker."},
    "timeMs": {"type": "integer", "description": "The moment that it is of."},
    "partitions": INTEGER,
    "removedMs": {"type": "integer", "description": "When it goes, if nobody removes it."},
}
_IMAGE: Schema = {"title": "Image", "type": "object", "required": [*_MEMBERS], "properties": _MEMBERS}
_TAG = "cluster"

ENDPOINTS = (
    Endpoint(
        "POST",
        "/images",
        make,
        "Make an image of the data directory.",
        answers={
            201: json_answer_of("It is there, and stays as it is while the broker goes on.", _IMAGE),
            409: Answer("There is nothing to copy: everything is in memory."),
            503: Answer("One is being made already, or there is no room."),
        },
        tag=_TAG,
        description="Its files are hard links: it takes no room of its own, but holds back that of what is "
        "deleted. `kbroker backup` makes one, copies it, and removes it. For who may alter the cluster.",
    ),
    Endpoint(
        "GET",
        "/images",
        list_all,
        "List the images that there are.",
        answers={
            200: json_answer_of(
                "The images.",
                {
                    "type": "object",
                    "required": ["images"],
                    "properties": {"images": {"type": "array", "items": _IMAGE}},
                },
            )
        },
        tag=_TAG,
    ),
    Endpoint(
        "DELETE",
        "/images/{image}",
        remove,
        "Remove an image.",
        (Parameter("image", "Its id.", where="path"),),
        answers={204: Answer("It is gone.")},
        tag=_TAG,
    ),
)
