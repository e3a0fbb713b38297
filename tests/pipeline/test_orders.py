from __future__ import annotations

import json

from kbroker.pipeline import reading
from kbroker.pipeline.demo import EXAMPLE
from kbroker.pipeline.orders import orders


def test_the_same_seed_gives_the_same_orders() -> None:
    assert list(orders(50)) == list(orders(50))
    assert list(orders(50)) != list(orders(50, seed=8))


def test_orders_come_in_the_order_of_their_times_and_some_are_invalid() -> None:
    made = list(orders(2000))
    good = [json.loads(order.value) for order in made if order.valid]
    assert [order["placed_at"] for order in good] == sorted(order["placed_at"] for order in good)
    assert 0 < len(made) - len(good) < 100


def test_the_example_is_a_good_file_that_takes_the_orders() -> None:
    pipeline = reading.load(EXAMPLE)
    columns = pipeline.sources["orders"].decode.schema or ""
    (first,) = [json.loads(order.value) for order in orders(1, invalid_share=0)]
    assert all(f"`{name}`" in columns for name in first)
    assert list(pipeline.sinks) == ["bronze", "silver", "gold"]
