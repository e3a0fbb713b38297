"""The error codes of Kafka 4.3, with what clients may do about each.

`retriable` is whether Kafka's clients try the same request again. `message` is a short text of our own for
responses that carry an error message and for logs. `ApiError` is a refusal that knows its code.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

_RETRY: Final = True


class ErrorCode(IntEnum):
    message: str
    retriable: bool

    def __new__(cls, code: int, message: str, retriable: bool = False) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.message = message
        member.retriable = retriable
        return member

    UNKNOWN_SERVER_ERROR = -1, "the broker failed in a way it did not expect"
    NONE = 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, "the offset lies outside the log"
    CORRUPT_MESSAGE = 2, "the records are corrupt: wrong checksum or size", _RETRY
    UNKNOWN_TOPIC_OR_PARTITION = 3, "no such topic or partition here", _RETRY
    INVALID_FETCH_SIZE = 4, "the fetch size is not valid"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader at present", _RETRY
    NOT_LEADER_OR_FOLLOWER = 6, "this broker does not hold the partition", _RETRY
    REQUEST_TIMED_OUT = 7, "the request timed out", _RETRY
    BROKER_NOT_AVAILABLE = 8, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, "the replica is not available", _RETRY
    MESSAGE_TOO_LARGE = 10, "the record batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, "the controller has moved"
    OFFSET_METADATA_TOO_LARGE = 12, "the metadata string of the committed offset is too long"
    NETWORK_EXCEPTION = 13, "the connection ended before the response", _RETRY
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still loading", _RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "no coordinator is available", _RETRY
    NOT_COORDINATOR = 16, "this broker is not the coordinator", _RETRY
    INVALID_TOPIC_EXCEPTION = 17, "the topic name is not valid"
    RECORD_LIST_TOO_LARGE = 18, "the record batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, "fewer replicas are in sync than required", _RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "written, but to fewer in-sync replicas than required", _RETRY
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, "the generation is not the group's current one"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member's protocols do not fit the group's"
    INVALID_GROUP_ID = 24, "the group id is not valid"
    UNKNOWN_MEMBER_ID = 25, "the group does not know this member"
    INVALID_SESSION_TIMEOUT = 26, "the session timeout is outside the broker's limits"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing; rejoin"
    INVALID_COMMIT_OFFSET_SIZE = 28, "the offset commit is too large"
    TOPIC_AUTHORIZATION_FAILED = 29, "not authorized for the topic"
    GROUP_AUTHORIZATION_FAILED = 30, "not authorized for the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "not authorized for the cluster"
    INVALID_TIMESTAMP = 32, "a record's timestamp is outside what the topic accepts"
    UNSUPPORTED_SASL_MECHANISM = 33, "the SASL mechanism is not enabled"
    ILLEGAL_SASL_STATE = 34, "the request does not fit the state of authentication"
    UNSUPPORTED_VERSION = 35, "the API version is not supported"
    TOPIC_ALREADY_EXISTS = 36, "the topic exists already"
    INVALID_PARTITIONS = 37, "the number of partitions is not valid"
    INVALID_REPLICATION_FACTOR = 38, "the replication factor is not valid"
    INVALID_REPLICA_ASSIGNMENT = 39, "the replica assignment is not valid"
    INVALID_CONFIG = 40, "the configuration is not valid"
    NOT_CONTROLLER = 41, "this broker is not the controller", _RETRY
    INVALID_REQUEST = 42, "the request contradicts itself or lacks something"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the message format does not support this"
    POLICY_VIOLATION = 44, "a policy of this cluster forbids it"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "the producer's sequence number leaves a gap"
    DUPLICATE_SEQUENCE_NUMBER = 46, "the producer's sequence number was used before"
    INVALID_PRODUCER_EPOCH = 47, "the producer epoch is older than the current one"
    INVALID_TXN_STATE = 48, "the transaction's state does not allow this"
    INVALID_PRODUCER_ID_MAPPING = 49, "the producer id is not the one of this transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction timeout is above the broker's limit"
    CONCURRENT_TRANSACTIONS = 51, "the previous transaction is still being completed", _RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "the transaction coordinator was replaced"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "not authorized for the transactional id"
    SECURITY_DISABLED = 54, "security is not enabled"
    OPERATION_NOT_ATTEMPTED = 55, "not attempted, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the disk failed", _RETRY
    LOG_DIR_NOT_FOUND = 57, "no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, "authentication failed"
    UNKNOWN_PRODUCER_ID = 59, "the log knows nothing of this producer id"
    REASSIGNMENT_IN_PROGRESS = 60, "a reassignment of the partition is in progress"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are not enabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the delegation token belongs to somebody else"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "this connection may not ask for delegation tokens"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "not authorized for the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the principal type is not supported"
    NON_EMPTY_GROUP = 68, "the group has members"
    GROUP_ID_NOT_FOUND = 69, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "no such fetch session", _RETRY
    INVALID_FETCH_SESSION_EPOCH = 71, "the fetch session is at another epoch", _RETRY
    LISTENER_NOT_FOUND = 72, "the leader has no listener of that name", _RETRY
    TOPIC_DELETION_DISABLED = 73, "deleting topics is disabled"
    FENCED_LEADER_EPOCH = 74, "the leader epoch is older than the partition's", _RETRY
    UNKNOWN_LEADER_EPOCH = 75, "the leader epoch is newer than the partition's", _RETRY
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the client does not support the compression of the records"
    STALE_BROKER_EPOCH = 77, "the broker epoch is stale"
    OFFSET_NOT_AVAILABLE = 78, "the high watermark has not caught up yet", _RETRY
    MEMBER_ID_REQUIRED = 79, "join again with the member id given"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is not available", _RETRY
    GROUP_MAX_SIZE_REACHED = 81, "the group has as many members as allowed"
    FENCED_INSTANCE_ID = 82, "another member took over this instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no eligible leader is available", _RETRY
    ELECTION_NOT_NEEDED = 84, "the partition has the leader it should have", _RETRY
    NO_REASSIGNMENT_IN_PROGRESS = 85, "no reassignment is in progress"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group is subscribed to the topic"
    INVALID_RECORD = 87, "a record is not valid"
    UNSTABLE_OFFSET_COMMIT = 88, "a transaction on these offsets is still open", _RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "a quota is exceeded", _RETRY
    PRODUCER_FENCED = 90, "a newer producer has this transactional id"
    RESOURCE_NOT_FOUND = 91, "no such resource"
    DUPLICATE_RESOURCE = 92, "the resource is named more than once"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential does not meet the requirements"
    INCONSISTENT_VOTER_SET = 94, "the voter sets differ"
    INVALID_UPDATE_VERSION = 95, "the update version is not valid"
    FEATURE_UPDATE_FAILED = 96, "the features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the forwarded principal cannot be read"
    SNAPSHOT_NOT_FOUND = 98, "no such snapshot"
    POSITION_OUT_OF_RANGE = 99, "the position lies outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, "no topic has this id", _RETRY
    DUPLICATE_BROKER_REGISTRATION = 101, "the broker id is registered already"
    BROKER_ID_NOT_REGISTERED = 102, "no broker has this id"
    INCONSISTENT_TOPIC_ID = 103, "the topic id in the log is another one", _RETRY
    INCONSISTENT_CLUSTER_ID = 104, "the cluster id is another one"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "the fetch session mixes topic names and topic ids", _RETRY
    INELIGIBLE_REPLICA = 107, "the replica may not join the in-sync set"
    NEW_LEADER_ELECTED = 108, "the change to the partition elected another leader"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset has moved to tiered storage"
    FENCED_MEMBER_EPOCH = 110, "the member epoch is not the group's; rejoin"
    UNRELEASED_INSTANCE_ID = 111, "another member still holds the instance id"
    UNSUPPORTED_ASSIGNOR = 112, "the group does not support this assignor"
    STALE_MEMBER_EPOCH = 113, "the member epoch is stale; retry with the current one"
    MISMATCHED_ENDPOINT_TYPE = 114, "the request went to the wrong kind of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "the endpoint type is not supported"
    UNKNOWN_CONTROLLER_ID = 116, "no controller has this id"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is not the current one"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is larger than allowed"
    INVALID_REGISTRATION = 119, "the registration is not valid"
    TRANSACTION_ABORTABLE = 120, "the transaction must be aborted, then may be tried again"
    INVALID_RECORD_STATE = 121, "the record's state does not allow this acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, "no such share session", _RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "the share session is at another epoch", _RETRY
    FENCED_STATE_EPOCH = 124, "the share partition's state has a newer epoch"
    INVALID_VOTER_KEY = 125, "the voter key is not the receiver's"
    DUPLICATE_VOTER = 126, "the voter is in the set already"
    VOTER_NOT_FOUND = 127, "the voter is not in the set"
    INVALID_REGULAR_EXPRESSION = 128, "the regular expression is not valid"
    REBOOTSTRAP_REQUIRED = 129, "the client must start again from its bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, "the topology is not valid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the topology epoch is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, "the topology epoch is older than the group's"
    SHARE_SESSION_LIMIT_REACHED = 133, "the broker holds as many share sessions as allowed", _RETRY


class ApiError(Exception):
    """A refusal that already knows its error code."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message
