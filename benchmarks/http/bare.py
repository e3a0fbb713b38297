"""The limit: uvicorn with httptools and uvloop, and an application that answers 200 whatever comes.

`python -m benchmarks.http.bare` prints the port it listens on and serves until it is killed.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

_HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"2")]


class Bare(NamedTuple):
    address: tuple[str, int]
    pid: int


@contextmanager
def bare_application() -> Iterator[Bare]:
    command = [sys.executable, "-m", "benchmarks.http.bare"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Bare(("127.0.0.1", int(process.stdout.readline())), process.pid)
        finally:
            process.kill()


async def _application(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": b"{}"})


def main() -> None:
    config = uvicorn.Config(
        _application, http="httptools", loop="uvloop", lifespan="off", log_config=None, access_log=False
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
