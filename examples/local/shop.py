"""A shop in one program: orders are kept, billed once each by two workers, and can be looked at with any
Kafka client meanwhile. Stop it, or kill it, and start it again: it goes on where it was.

    python shop.py [DIRECTORY]
"""

import asyncio
import sys

from kbroker.local import LocalBroker

ORDERS = 20


async def take_orders(broker: LocalBroker) -> None:
    for number in range(ORDERS):
        await broker.publish(
            "orders", {"number": number, "amount": 10 + number}, key=f"customer-{number % 5}"
        )


async def bill(broker: LocalBroker, worker: str) -> None:
    """What is billed, and that it is, are one transaction: no order twice, and none left out."""
    async with broker.subscribe("orders", group="billing", auto_commit=False) as orders:
        while True:
            some = await orders.poll(max_records=3)
            async with broker.transaction(f"billing-{worker}") as transaction:
                await transaction.commit_offsets(orders)
                for order in some:
                    invoice = {"order": order.json()["number"], "due": order.json()["amount"]}
                    await transaction.publish("invoices", invoice, key=order.key)


async def main(directory: str) -> None:
    async with LocalBroker(data=directory, port=0) as broker:
        print(f"kbroker consume orders -b {broker.bootstrap_servers}")
        await broker.create_topic("orders", partitions=4, if_not_exists=True)
        await broker.create_topic("invoices", if_not_exists=True)
        await take_orders(broker)
        ordered = sum((await broker.offsets("orders")).values())

        workers = [asyncio.create_task(bill(broker, worker)) for worker in ("a", "b")]
        invoices = due = 0
        async with broker.subscribe("invoices", isolation="read_committed") as records:
            while invoices < ordered:
                invoice = (await anext(records)).json()
                invoices += 1
                due += invoice["due"]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        print(f"{ordered} orders, {invoices} invoices, {due} due, lag {(await broker.lag('billing')).total}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "shop-data"))
