from __future__ import annotations

import pytest

from kbroker.transactions.offsets_partition import offsets_partition


@pytest.mark.parametrize(
    ("group_id", "java_hash"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("my-consumer-group", 1513705513),
        ("gr\U0001f600ppe", 1464259607),
        ("consumer-group-äö", 277012119),
    ],
)
def test_the_partition_is_javas_hash_of_the_group(group_id: str, java_hash: int) -> None:
    assert offsets_partition(group_id, 50) == java_hash % 50


def test_the_hash_without_a_positive_counterpart_counts_as_0() -> None:
    assert offsets_partition("polygenelubricants", 50) == 0  # its hash is -2^31


def test_a_negative_hash_counts_by_its_amount() -> None:
    assert offsets_partition("zzzzzzz", 1000) == abs(_java_hash("zzzzzzz")) % 1000


def _java_hash(text: str) -> int:
    value = 0
    for character in text:
        value = value * 31 + ord(character)
    return (value + 2**31) % 2**32 - 2**31
