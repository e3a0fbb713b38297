"""Runs the async tests of this folder, with the clients open around them."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from compat.harness.brokers import Server

from .clients import Clients


@pytest.fixture
def clients(kafka_server: Server, topic: str) -> Clients:
    return Clients(kafka_server.bootstrap, topic)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def run() -> None:
        async with arguments["clients"]:
            await pyfuncitem.obj(**arguments)

    asyncio.run(run())
    return True
