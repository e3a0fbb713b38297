"""What is refused to the users of consumers, each with the code that Kafka has for the like."""

from __future__ import annotations

from kbroker.protocol.errors import ApiError, ErrorCode


class NoSuchConsumer(ApiError):
    """There is none of this name, or none of this user's."""

    def __init__(self, group_id: str, name: str) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"There is no consumer {name} of yours in group {group_id}: it may have been idle for too long, "
            "or the broker was started anew. Create it again; committed offsets are kept.",
        )


class ConsumerExists(ApiError):
    def __init__(self, group_id: str, name: str) -> None:
        super().__init__(
            ErrorCode.DUPLICATE_RESOURCE,
            f"Group {group_id} has a consumer {name} already: take another name.",
        )


class TooManyConsumers(ApiError):
    def __init__(self, most: int) -> None:
        super().__init__(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The broker has {most} consumers already (kbroker.http.max.consumers): delete some, or wait "
            "until idle ones expire.",
        )


class IllegalState(ApiError):
    """What is asked does not fit what the consumer is: subscribed, assigned by hand, or neither."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message)


class NotAssigned(ApiError):
    """Of partitions that the consumer does not hold, or no more."""

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(
            ErrorCode.STALE_MEMBER_EPOCH,
            f"Partition {partition} of {topic} is not assigned to this consumer: another member of its group "
            "may have it now.",
        )


class NoOffset(ApiError):
    """auto.offset.reset is none, and there is no offset to begin at."""

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"The consumer has no valid offset for partition {partition} of {topic}, and its "
            "auto.offset.reset is none: seek to one.",
        )
