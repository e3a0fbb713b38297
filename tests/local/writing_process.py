"""A process with a broker in it that publishes and reads, and says what is done, until it is killed."""

from __future__ import annotations

import asyncio
import sys

from kbroker.local import LocalBroker, NewRecord


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201


async def publish(broker: LocalBroker) -> None:
    number = 0
    while True:
        told = await broker.publish("t", str(number), key=str(number))
        say("published", told.partition, told.offset, number)
        if number % 20 == 0:
            pair = [NewRecord("a", str(number)), NewRecord("b", str(number))]
            await broker.publish_many(pair)
            say("pair", number)
        number += 1


async def read(broker: LocalBroker) -> None:
    async for record in broker.subscribe("t", group="g", auto_commit=False):
        if record.offset % 5 == 4:
            await record.commit()
            say("committed", record.partition, record.offset + 1)


async def copy(broker: LocalBroker) -> None:
    """Each record once, however often the process dies."""
    async with broker.subscribe("t", group="copy", auto_commit=False) as records:
        while True:
            some = await records.poll(20)
            async with broker.transaction("copier") as transaction:
                await transaction.commit_offsets(records)
                for record in some:
                    await transaction.publish("copied", f"{record.partition}-{record.offset}")


async def main(data: str) -> None:
    async with LocalBroker(data=data) as broker:
        await broker.create_topic("t", partitions=2, if_not_exists=True)
        await broker.create_topic("copied", if_not_exists=True)
        await asyncio.gather(publish(broker), read(broker), copy(broker))


asyncio.run(main(sys.argv[1]))
