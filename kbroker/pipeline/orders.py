"""A stream of orders of a web shop, for the demo and for tests: busier by day, some of them invalid.

The same seed gives the same orders.
"""

from __future__ import annotations

import datetime
import json
import math
import random
from collections.abc import Iterator
from typing import NamedTuple

PRODUCTS = {
    "books": (("novel", 12.5), ("atlas", 39.0), ("cookbook", 24.9)),
    "garden": (("spade", 18.0), ("roses", 27.5), ("greenhouse", 349.0)),
    "kitchen": (("pan", 45.0), ("knife", 62.0), ("kettle", 29.9)),
    "music": (("strings", 9.9), ("ukulele", 79.0), ("piano lamp", 54.0)),
    "toys": (("puzzle", 14.9), ("train set", 89.0), ("kite", 22.0)),
}
COUNTRIES = ("AT", "CH", "DE", "FR", "IT", "NL", "PL")


class Order(NamedTuple):
    key: bytes
    value: bytes
    valid: bool


def orders(
    count: int, seed: int = 7, day: datetime.date = datetime.date(2026, 3, 14), invalid_share: float = 0.02
) -> Iterator[Order]:
    """One day's orders, in the order of their times."""
    chance = random.Random(seed)
    for number, second in enumerate(sorted(_second_of_day(chance) for _ in range(count)), start=1):
        placed = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
        placed += datetime.timedelta(seconds=second)
        order = _order(chance, number, placed)
        if chance.random() < invalid_share:
            yield Order(str(order["customer"]).encode(), _broken(chance, order), valid=False)
        else:
            yield Order(str(order["customer"]).encode(), json.dumps(order).encode(), valid=True)


def _order(chance: random.Random, number: int, placed: datetime.datetime) -> dict[str, str | int | float]:
    category = chance.choice(list(PRODUCTS))
    product, price = chance.choice(PRODUCTS[category])
    return {
        "order_id": number,
        "customer": f"c{chance.randrange(1, 400):04d}",
        "placed_at": placed.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "category": category,
        "product": product,
        "quantity": min(1 + int(chance.expovariate(1.2)), 9),
        "price": round(price * chance.uniform(0.9, 1.1), 2),
        "country": chance.choice(COUNTRIES),
    }


def _second_of_day(chance: random.Random) -> int:
    """Few orders at night, most at noon and in the evening."""
    while True:
        hour = chance.uniform(0, 24)
        weight = 0.12 + math.exp(-((hour - 12.5) ** 2) / 6) + 1.3 * math.exp(-((hour - 20) ** 2) / 4)
        if chance.random() < weight / 1.45:
            return int(hour * 3600)


def _broken(chance: random.Random, order: dict[str, str | int | float]) -> bytes:
    kind = chance.randrange(4)
    if kind == 0:
        return json.dumps(order).encode()[:-9]  # cut off
    if kind == 1:
        return json.dumps({**order, "quantity": -1}).encode()
    if kind == 2:
        return json.dumps({**order, "price": "a lot"}).encode()
    return json.dumps({name: value for name, value in order.items() if name != "order_id"}).encode()
