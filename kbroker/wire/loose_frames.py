"""Frames in bytes that somebody copied out of somewhere: with or without lengths, requests or responses.

What a frame is has to be guessed, unless it is told. One that reads as a request to its last byte is a
request; else it is the response to an earlier one in the input with its correlation id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kbroker.wire.conversation import Asked
from kbroker.wire.frames import REQUEST, Explained, explain_request, explain_response, is_plausible_request
from kbroker.wire.framing import LARGEST_FRAME, LENGTH_BYTES
from kbroker.wire.hex_input import BROKER, CLIENT, Chunk
from kbroker.wire.packets import payload_of_packet
from kbroker.wire.tree import Problem


class Hints(NamedTuple):
    """What the user knows of the frames."""

    lengths: bool | None = None  # whether each has its length in front
    response_to: tuple[int, int] | None = None  # all are responses to this API key and version


def explained_frames(chunks: Sequence[Chunk], hints: Hints) -> Iterator[Explained]:
    asked: dict[int, Asked] = {}
    for chunk in chunks:
        data, note = chunk.data, None
        payload = payload_of_packet(data) if hints.lengths is None else None
        if payload and (is_plausible_request(payload) or _begins_with_length(payload)):
            data, note = payload, f"of the {len(data)} bytes of the packet {len(payload)} are TCP's"
        for frame, size in _frames(data, hints, is_response=chunk.sender == BROKER):
            explained = _explained(frame, size, chunk.sender, asked, hints)
            explained.note = explained.note or note
            if (
                explained.kind == REQUEST
                and explained.correlation_id is not None
                and explained.problem is None
            ):
                asked[explained.correlation_id] = Asked(
                    explained.api_key, explained.version or 0, explained.correlation_id, explained.client_id
                )
            yield explained


def _begins_with_length(data: bytes) -> bool:
    """A length that fits, or that is in front of a request."""
    view = memoryview(data)
    while len(view) > LENGTH_BYTES:
        size = int.from_bytes(view[:LENGTH_BYTES], "big", signed=True)
        if not 0 < size <= LARGEST_FRAME:
            return False
        if size == len(view) - LENGTH_BYTES or is_plausible_request(view[LENGTH_BYTES:], size):
            return True
        view = view[LENGTH_BYTES + size :]
    return False


def _frames(data: bytes, hints: Hints, *, is_response: bool) -> Iterator[tuple[bytes, int]]:
    """Each frame without its length, and the size that the length tells."""
    lengths = hints.lengths
    if lengths is None:
        lengths = is_response or (_begins_with_length(data) and explain_request(data).problem is not None)
    if not lengths:
        yield data, len(data)
        return
    position = 0
    while position < len(data):
        size = int.from_bytes(data[position : position + LENGTH_BYTES], "big", signed=True)
        start = position + LENGTH_BYTES
        if start > len(data) or not 0 <= size <= LARGEST_FRAME:
            yield data[position:], len(data) - position
            return
        yield data[start : start + size], size
        position = start + size


def _explained(
    frame: bytes, size: int, sender: str | None, asked: dict[int, Asked], hints: Hints
) -> Explained:
    if hints.response_to is not None:
        return _truncated(explain_response(frame, *hints.response_to), size)
    request = explain_request(frame)
    if sender == CLIENT or (sender is None and request.problem is None):
        return _truncated(request, size)
    earlier = asked.get(int.from_bytes(frame[:4], "big", signed=True)) if len(frame) >= 4 else None
    if earlier is not None and earlier.api_key is not None:
        response = explain_response(frame, earlier.api_key, earlier.version)
        if sender == BROKER or response.problem is None or not is_plausible_request(frame, size):
            response.client_id = earlier.client_id
            return _truncated(response, size)
    return _truncated(request, size)


def _truncated(explained: Explained, size: int) -> Explained:
    """With the size that its length tells: a frame whose end is missing is told as such."""
    present = len(explained.frame)
    if size > present and explained.problem is None:
        explained.problem = Problem(present, "", f"the frame ends: {present} of its {size} bytes are there")
    elif size > present and explained.problem is not None:
        reason = f"{explained.problem.reason} ({present} of the {size} bytes of the frame)"
        explained.problem = explained.problem._replace(reason=reason)
    return explained
