"""The exceptions have the names and codes of Kafka's errors."""

from __future__ import annotations

import inspect

from kbroker.local import errors
from kbroker.local.errors import KafkaError, kafka_error
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.storage.errors import RecordTooLarge
from kbroker.storage.errors import UnexpectedOffset as LogEndsElsewhere

OURS = {errors.KafkaError, errors.UnexpectedOffset}
CLASSES = {
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, KafkaError) and each not in OURS
}


def test_each_is_named_as_its_code() -> None:
    assert len(CLASSES) > 30
    for each in CLASSES:
        assert each.__name__ == each.code.name.title().replace("_", ""), each
    assert len({each.code for each in CLASSES}) == len(CLASSES)


def test_what_is_refused_below_is_told_by_the_class_of_its_code() -> None:
    told = kafka_error(RecordTooLarge("too large"))
    assert isinstance(told, errors.MessageTooLarge)
    assert (told.message, str(told)) == ("too large", "MESSAGE_TOO_LARGE: too large")
    told = kafka_error(LogEndsElsewhere(3, 7))
    assert isinstance(told, errors.UnexpectedOffset)
    assert (told.next_offset, told.code) == (7, ErrorCode.INVALID_REQUEST)


def test_one_without_a_class_has_its_code() -> None:
    told = kafka_error(ApiError(ErrorCode.SNAPSHOT_NOT_FOUND))
    assert type(told) is KafkaError
    assert told.code is ErrorCode.SNAPSHOT_NOT_FOUND
    assert told.message == ErrorCode.SNAPSHOT_NOT_FOUND.message


def test_a_fault_stays_what_it_is() -> None:
    assert kafka_error(ZeroDivisionError()) is None
