"""A TCP proxy in front of a Kafka broker that keeps every request frame with its response frame."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass


@dataclass
class Exchange:
    """A request and its response as they were on the wire, without their lengths."""

    api_key: int
    api_version: int
    request: bytes
    response: bytes | None = None


class FrameRecorder:
    """`with FrameRecorder() as recorder: recorder.target = address`; clients connect to `recorder.port`."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.target = ("127.0.0.1", 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]

    def __enter__(self) -> FrameRecorder:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self.target)
                self._sockets += [client, broker]
                waiting: dict[int, Exchange] = {}
                for source, sink, note in (
                    (client, broker, self._note_request),
                    (broker, client, self._note_response),
                ):
                    threading.Thread(
                        target=self._pump, args=(source, sink, note, waiting), daemon=True
                    ).start()

    def _pump(self, source, sink, note, waiting) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                length = self._take(source, 4)
                frame = self._take(source, struct.unpack(">i", length)[0])
                note(frame, waiting)
                sink.sendall(length + frame)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _take(self, source: socket.socket, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            part = source.recv(size - len(taken))
            if not part:
                raise EOFError
            taken += part
        return bytes(taken)

    def _note_request(self, frame: bytes, waiting: dict[int, Exchange]) -> None:
        api_key, api_version, correlation_id = struct.unpack_from(">hhi", frame)
        waiting[correlation_id] = exchange = Exchange(api_key, api_version, frame)
        self.exchanges.append(exchange)

    def _note_response(self, frame: bytes, waiting: dict[int, Exchange]) -> None:
        waiting.pop(*struct.unpack_from(">i", frame)).response = frame
