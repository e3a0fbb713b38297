"""What can go wrong with a group, and the error code each case has in Kafka.

The state machines raise these, or put them where one member or one partition failed. GROUP_ERRORS is the
table that kbroker.errors includes; nothing else in this package knows error codes.
"""

from __future__ import annotations

from kbroker.protocol.errors import ErrorCode


class GroupError(Exception):
    """`member_id`, where set, is the member id that a JoinGroup response carries with the error."""

    def __init__(self, message: str = "", *, member_id: str | None = None) -> None:
        super().__init__(message)
        self.member_id = member_id


class CoordinatorNotAvailable(GroupError):
    """The change could not be stored; the client tries again."""


class NotCoordinator(GroupError):
    """The coordinator is going away."""


class InvalidGroupId(GroupError):
    pass


class InvalidSessionTimeout(GroupError):
    pass


class InvalidRequest(GroupError):
    pass


class UnknownMemberId(GroupError):
    pass


class MemberIdRequired(GroupError):
    """KIP-394: join again with the member id that comes with this."""


class IllegalGeneration(GroupError):
    pass


class RebalanceInProgress(GroupError):
    pass


class InconsistentGroupProtocol(GroupError):
    pass


class FencedInstanceId(GroupError):
    """KIP-345: another member has taken over this group instance id."""


class UnreleasedInstanceId(GroupError):
    pass


class GroupMaxSizeReached(GroupError):
    pass


class GroupIdNotFound(GroupError):
    pass


class NonEmptyGroup(GroupError):
    pass


class GroupSubscribedToTopic(GroupError):
    pass


class StaleMemberEpoch(GroupError):
    pass


class FencedMemberEpoch(GroupError):
    pass


class UnsupportedAssignor(GroupError):
    pass


class InvalidRegularExpression(GroupError):
    pass


class StreamsInvalidTopology(GroupError):
    pass


class UnsupportedVersion(GroupError):
    """A member of the consumer protocol commits with a version that cannot carry its epoch."""


class OffsetMetadataTooLarge(GroupError):
    pass


class UnstableOffsetCommit(GroupError):
    """A transaction that has not ended yet has an offset for this partition."""


class UnknownTopicOrPartition(GroupError):
    pass


class UnknownTopicId(GroupError):
    pass


GROUP_ERRORS: dict[type[BaseException], ErrorCode] = {
    CoordinatorNotAvailable: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    NotCoordinator: ErrorCode.NOT_COORDINATOR,
    InvalidGroupId: ErrorCode.INVALID_GROUP_ID,
    InvalidSessionTimeout: ErrorCode.INVALID_SESSION_TIMEOUT,
    InvalidRequest: ErrorCode.INVALID_REQUEST,
    UnknownMemberId: ErrorCode.UNKNOWN_MEMBER_ID,
    MemberIdRequired: ErrorCode.MEMBER_ID_REQUIRED,
    IllegalGeneration: ErrorCode.ILLEGAL_GENERATION,
    RebalanceInProgress: ErrorCode.REBALANCE_IN_PROGRESS,
    InconsistentGroupProtocol: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    FencedInstanceId: ErrorCode.FENCED_INSTANCE_ID,
    UnreleasedInstanceId: ErrorCode.UNRELEASED_INSTANCE_ID,
    GroupMaxSizeReached: ErrorCode.GROUP_MAX_SIZE_REACHED,
    GroupIdNotFound: ErrorCode.GROUP_ID_NOT_FOUND,
    NonEmptyGroup: ErrorCode.NON_EMPTY_GROUP,
    GroupSubscribedToTopic: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    StaleMemberEpoch: ErrorCode.STALE_MEMBER_EPOCH,
    FencedMemberEpoch: ErrorCode.FENCED_MEMBER_EPOCH,
    UnsupportedAssignor: ErrorCode.UNSUPPORTED_ASSIGNOR,
    InvalidRegularExpression: ErrorCode.INVALID_REGULAR_EXPRESSION,
    StreamsInvalidTopology: ErrorCode.STREAMS_INVALID_TOPOLOGY,
    UnsupportedVersion: ErrorCode.UNSUPPORTED_VERSION,
    OffsetMetadataTooLarge: ErrorCode.OFFSET_METADATA_TOO_LARGE,
    UnstableOffsetCommit: ErrorCode.UNSTABLE_OFFSET_COMMIT,
    UnknownTopicOrPartition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    UnknownTopicId: ErrorCode.UNKNOWN_TOPIC_ID,
}
