"""The limit: frames from a socket appended to a file and answered, with nothing in between.

`python -m benchmarks.bare_copy FILE` prints the port it listens on and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from typing import cast

import uvloop

_ANSWER = struct.pack(">i", 60) + bytes(60)


class Copy(asyncio.BufferedProtocol):
    def __init__(self, file: int) -> None:
        self._file = file
        self._buffer = bytearray(4 * 1024 * 1024)
        self._view = memoryview(self._buffer)
        self._end = 0

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
            os.write(self._file, self._view[start + 4 : start + 4 + size])
            self._transport.write(_ANSWER)
            start += 4 + size
        rest = self._end - start
        self._buffer[:rest] = self._buffer[start : self._end]
        self._end = rest


async def main(path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Copy(file), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
