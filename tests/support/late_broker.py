"""kbroker on logs that give offsets a moment after they took a batch, and records a moment after a Fetch."""

from __future__ import annotations

import asyncio
from functools import partial

from kbroker import server
from kbroker.catalog.memory import MemoryCatalog
from kbroker.cli import main
from kbroker.config.settings import Settings
from kbroker.data_directory import directory_config
from kbroker.storage.interface import Directory
from kbroker.storage.worker import Worker
from tests.support.late_logs import LateDirectory

_DELAY_SECONDS = 0.005


def open_late(settings: Settings, worker: Worker, now_ms: int) -> tuple[Directory, MemoryCatalog]:
    schedule = partial(asyncio.get_running_loop().call_later, _DELAY_SECONDS)
    logs = LateDirectory(now_ms=now_ms, settings=directory_config(settings), schedule=schedule)
    return logs, MemoryCatalog()


if __name__ == "__main__":
    server.open_data = open_late
    raise SystemExit(main())
