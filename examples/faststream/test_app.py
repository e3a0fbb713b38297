"""The application against a real broker, which runs in the event loop of the test."""

import asyncio
import base64
import json

from app import make_broker

from kbroker.testing import KafkaBroker


async def invoices_for(orders):
    async with KafkaBroker(topics=["orders", "invoices"], in_process=True) as kafka:
        application = make_broker(kafka.bootstrap_servers)
        await application.start()
        for order in orders:
            await application.publish(order, "orders")
        invoices = []
        while len(invoices) < len(orders):
            invoices = await kafka.control("records", topic="invoices")
            await asyncio.sleep(0.01)
        await application.stop()
    return [json.loads(base64.b64decode(invoice["value"])) for invoice in invoices]


def test_every_order_becomes_an_invoice():
    orders = [{"customer": "ada", "amount": 100}, {"customer": "bob", "amount": 200}]

    invoices = asyncio.run(asyncio.wait_for(invoices_for(orders), 30))

    assert invoices == [{"customer": "ada", "total": 119.0}, {"customer": "bob", "total": 238.0}]
