"""Orders in, invoices out: https://faststream.airt.ai"""

from faststream.kafka import KafkaBroker
from pydantic import BaseModel


class Order(BaseModel):
    customer: str
    amount: int


class Invoice(BaseModel):
    customer: str
    total: float


def make_broker(bootstrap_servers: str) -> KafkaBroker:
    """In production: FastStream(make_broker(os.environ["KAFKA"])).run()"""
    broker = KafkaBroker(bootstrap_servers)

    @broker.subscriber("orders", group_id="billing", auto_offset_reset="earliest")
    @broker.publisher("invoices")
    async def bill(order: Order) -> Invoice:
        return Invoice(customer=order.customer, total=order.amount * 1.19)

    return broker
