"""The limit: frames from a socket appended to a file and answered, with nothing in between.

`python -m benchmarks.bare_copy FILE` prints the port it listens on and serves until it is killed. An empty
frame asks for the next megabyte of the file, from its start and round again.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from typing import cast

import uvloop

ANSWER_BYTES = 2**20
_ACKNOWLEDGED = struct.pack(">i", 60) + bytes(60)


class Copy(asyncio.BufferedProtocol):
    def __init__(self, file: int) -> None:
        self._file = file
        self._buffer = bytearray(4 * 1024 * 1024)
        self._view = memoryview(self._buffer)
        self._end = 0
        self._answer = memoryview(bytearray(4 + ANSWER_BYTES))
        struct.pack_into(">i", self._answer, 0, ANSWER_BYTES)
        self._position = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=0)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        start = 0
        while self._end - start >= 4:
            (size,) = struct.unpack_from(">i", self._buffer, start)
            if self._end - start - 4 < size:
                break
            if size:
                os.write(self._file, self._view[start + 4 : start + 4 + size])
                self._transport.write(_ACKNOWLEDGED)
            else:
                self._send_next()
            start += 4 + size
        rest = self._end - start
        self._buffer[:rest] = self._buffer[start : self._end]
        self._end = rest

    def _send_next(self) -> None:
        if os.preadv(self._file, [self._answer[4:]], self._position) < ANSWER_BYTES:
            self._position = 0
            os.preadv(self._file, [self._answer[4:]], 0)
        self._position += ANSWER_BYTES
        self._transport.write(self._answer)


async def main(path: str) -> None:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Copy(file), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
