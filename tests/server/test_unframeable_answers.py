"""An answer that comes later and cannot be encoded costs its own connection, and nobody else's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kbroker.config.settings import Settings
from kbroker.handlers import list_groups
from kbroker.pending import Pending
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kbroker.requests import endpoint
from kbroker.server import Server
from tests.support.raw_client import Closed, RawClient

GOOD = ListGroupsResponse(groups=[ListedGroup(group_id="group", protocol_type="consumer")])
BAD = ListGroupsResponse(groups=[ListedGroup(group_id=None, protocol_type="consumer")])  # type: ignore[arg-type]


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = await Server.open(Settings.load(flags={"kbroker.in.memory": "true"}, port=0))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def test_whoever_is_settled_behind_it_gets_an_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: asyncio.Queue[Pending[ListGroupsResponse]] = asyncio.Queue()

    def handle(*_: object) -> Pending[ListGroupsResponse]:
        answer: Pending[ListGroupsResponse] = Pending()
        asked.put_nowait(answer)
        return answer

    monkeypatch.setattr(list_groups, "handle", handle)
    monkeypatch.setattr(endpoint, "_endpoints", {})

    async def scenario() -> None:
        async with serving() as server:
            _, host, port = server.addresses[0]
            clients = [await asyncio.to_thread(RawClient, (host, port)) for _ in range(3)]
            waiting = []
            for client in clients:
                client.send(ListGroupsRequest(), 0)
                waiting.append(await asyncio.wait_for(asked.get(), 20))
            for pending, answer in zip(waiting, (BAD, GOOD, GOOD), strict=True):
                pending.resolve(answer)
            for client in clients[1:]:
                found = await asyncio.to_thread(client.receive)
                assert [group.group_id for group in found.groups] == ["group"]
                answered = await asyncio.to_thread(client.ask, ApiVersionsRequest(), 0)
                assert answered.error_code == 0
            with pytest.raises(Closed):
                await asyncio.to_thread(clients[0].receive)
            for client in clients:
                client.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    told = [record for record in caplog.records if "could not be answered" in record.getMessage()]
    assert len(told) == 1
