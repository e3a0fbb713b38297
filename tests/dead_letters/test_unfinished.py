"""What a killed broker has left of a move is finished by the next one, before anybody gets the records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from kbroker.catalog.rows import DEAD_LETTERS
from kbroker.catalog.sqlite.catalog import SqliteCatalog
from kbroker.coordinators.shares.records import Dead
from kbroker.coordinators.shares.store import ShareKey
from kbroker.dead_letters.intents import Intent, Intents
from tests.dead_letters.share_groups import (
    ACCEPT,
    GROUP,
    acknowledge,
    configure_group,
    dead_letters,
    kafka_admin,
    produce,
    share_consumer,
)
from tests.support.server_process import ServerProcess, eventually

GIVEN_UP = [Dead(3, 5, 5, "limit"), Dead(8, 8, 1, "reject")]
LETTERS = [3, 4, 5, 8]


def leave_behind(directory: Path, dead: Sequence[Dead]) -> None:
    """The intent of a broker that was killed before its first dead letter."""
    catalog = SqliteCatalog.open(directory)
    ids = {row.name: row.topic_id for row in catalog.snapshot().topics}
    intents = Intents(partial(catalog.save_entries, DEAD_LETTERS), {})
    intent = Intent("orders", ids["dlq.orders"], 0, 0, 12_345, 0, copy_record=True, dead=dead)
    intents.save(ShareKey(GROUP, ids["orders"], 0), intent).result()
    catalog.close()


@pytest.mark.slow
def test_an_unfinished_move_is_finished_by_the_next_start(tmp_path: Path) -> None:
    with ServerProcess("--data", str(tmp_path)) as server:
        configure_group(server.bootstrap)
        with kafka_admin.AdminClient({"bootstrap.servers": server.bootstrap}) as client:
            topics = [kafka_admin.NewTopic(name, 1) for name in ("orders", "dlq.orders")]
            for made in client.create_topics(topics).values():
                made.result(20)
        produce(server.bootstrap, "orders", range(1))
        with share_consumer(server.bootstrap, "orders") as consumer:
            acknowledge(consumer, lambda _: ACCEPT, lambda seen: len(seen) == 1)
        produce(server.bootstrap, "orders", range(1, 10))
        assert server.stop() == 0
        leave_behind(tmp_path, GIVEN_UP)
        for _ in range(2):  # the second start finds nothing to do
            server.start()
            eventually(lambda: len(dead_letters(server.bootstrap, "dlq.orders")) == len(LETTERS))
            assert server.stop() == 0
        server.start()
        found = dead_letters(server.bootstrap, "dlq.orders")
        assert [(origin.offset, value) for origin, _, value, _ in found] == [
            (offset, b"v%d" % offset) for offset in LETTERS
        ]
        with share_consumer(server.bootstrap, "orders") as consumer:
            seen = acknowledge(consumer, lambda _: ACCEPT, lambda seen: len(seen) == 5)
        assert seen == [b"v1", b"v2", b"v6", b"v7", b"v9"]
