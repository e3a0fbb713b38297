"""The error codes are Kafka's, as kio has them from Kafka's source."""

from __future__ import annotations

import kio.schema.errors

from kbroker.protocol.errors import ErrorCode


def test_codes_names_and_retriability_are_kafkas():
    expected = {int(code): (code.name.upper(), code.retriable) for code in kio.schema.errors.ErrorCode}
    assert {int(code): (code.name, code.retriable) for code in ErrorCode} == expected


def test_codes_are_integers_with_a_short_text():
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.NONE == 0
    assert all(code.message for code in ErrorCode)
    assert len({code.message for code in ErrorCode}) == len(ErrorCode)
