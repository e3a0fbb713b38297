"""What a caller may reach: the one way from a request to topics, logs, groups, transactions and configs.

Every method that hands out a resource asks the authorizer first, where there is one: a resource that was
handed out may be used for the operation that was named. What is refused raises ApiError with the code of the
resource's kind. Handlers and operations know no other way (tests/handlers/test_resources.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.config.resources import ResourceType
from kbroker.errors import error_code
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import CLUSTER_NAME, OPERATIONS_OF, AclOperation, AclResourceType
from kbroker.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import Any

    from kbroker.broker import Broker
    from kbroker.catalog.interface import Catalog
    from kbroker.cluster.features import Features
    from kbroker.config.dynamic import DynamicConfigs
    from kbroker.coordinators.groups.coordinator import GroupCoordinator, ListedGroup
    from kbroker.coordinators.shares.states import ShareStates
    from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
    from kbroker.coordinators.transactions.transaction import Transaction
    from kbroker.operations.images import Images
    from kbroker.pending import Pending
    from kbroker.quotas.table import QuotaTable
    from kbroker.quotas.throttling import RequestThrottle
    from kbroker.requests.context import Peer
    from kbroker.security.acl_store import AclStore
    from kbroker.security.audit import AuditLog
    from kbroker.security.authorizer import Authorizer, Caller
    from kbroker.security.delegation_tokens import DelegationToken, DelegationTokens
    from kbroker.security.principal import Principal
    from kbroker.security.users import Users
    from kbroker.shares.registry import Shares
    from kbroker.storage.interface import Directory, Log
    from kbroker.topics.creation import CheckedTopic
    from kbroker.topics.registry import Topic
    from kbroker.transactions.producer_ids import ProducerIds
    from kbroker.transactions.writes import TransactionalWrites

TopicKey = str | bytes
"""A topic's name, or its id."""

_NO_TOPIC = "There is no such topic."
_REFUSED = {
    AclResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    AclResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    AclResourceType.USER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}


class Resources:
    __slots__ = ("_authorizer", "_caller", "broker")

    def __init__(self, broker: Broker, caller: Caller | None, authorizer: Authorizer | None) -> None:
        """``authorizer``: None where the caller may do everything."""
        self.broker = broker
        self._caller = caller
        self._authorizer = authorizer

    # decisions

    def may(self, operation: AclOperation, resource_type: AclResourceType, name: str) -> bool:
        if self._authorizer is None or self._caller is None:
            return True
        return self._authorizer.authorize(self._caller, operation, resource_type, name)

    def check(self, operation: AclOperation, resource_type: AclResourceType, name: str) -> None:
        if self._authorizer is not None and not self.may(operation, resource_type, name):
            self.tell_refusal(operation, resource_type, name)
            raise _refusal(operation, resource_type)

    def tell_refusal(self, operation: AclOperation, resource_type: AclResourceType, name: str) -> None:
        """Let the audit log know that the caller is told no."""
        audit, caller = self.broker.audit, self._caller
        if audit is None or caller is None:
            return
        audit.refusal(
            principal=caller.principal,
            address=caller.peer_host,
            api=caller.api_name,
            operation=operation,
            resource_type=resource_type,
            resource=name,
        )

    def tell_change(
        self,
        resource_type: str,
        resource: str,
        error: BaseException | None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Let the audit log know what the caller changed, or failed to."""
        code = None if error is None else error_code(error) or ErrorCode.UNKNOWN_SERVER_ERROR
        self._tell(resource_type, resource, "success" if code is None else code.name, details)

    def tell_abandoned(
        self, resource_type: str, resource: str, details: Mapping[str, Any] | None = None
    ) -> None:
        """Let the audit log know of a change that the caller did not wait for."""
        self._tell(resource_type, resource, "unknown", details)

    def _tell(
        self, resource_type: str, resource: str, outcome: str, details: Mapping[str, Any] | None
    ) -> None:
        audit, caller = self.broker.audit, self._caller
        if audit is not None and caller is not None:
            audit.change(
                principal=caller.principal,
                address=caller.peer_host,
                api=caller.api_name,
                resource_type=resource_type,
                resource=resource,
                outcome=outcome,
                details=details,
            )

    def may_topic(self, operation: AclOperation, name: str) -> bool:
        return self._authorizer is None or self.may(operation, AclResourceType.TOPIC, name)

    def may_cluster(self, operation: AclOperation) -> bool:
        return self._authorizer is None or self.may(operation, AclResourceType.CLUSTER, CLUSTER_NAME)

    def check_topic(self, operation: AclOperation, name: str) -> None:
        if self._authorizer is not None:
            self.check(operation, AclResourceType.TOPIC, name)

    def check_cluster(self, operation: AclOperation) -> None:
        if self._authorizer is not None:
            self.check(operation, AclResourceType.CLUSTER, CLUSTER_NAME)

    def check_group(self, operation: AclOperation, group_id: str) -> None:
        if self._authorizer is not None:
            self.check(operation, AclResourceType.GROUP, group_id)

    def check_transactional_id(self, operation: AclOperation, transactional_id: str) -> None:
        if self._authorizer is not None:
            self.check(operation, AclResourceType.TRANSACTIONAL_ID, transactional_id)

    def may_any_topic(self, operation: AclOperation) -> bool:
        """Whether there is a topic to which the caller may do this."""
        if self._authorizer is None or self._caller is None:
            return True
        return self._authorizer.authorize_by_resource_type(self._caller, operation, AclResourceType.TOPIC)

    def check_creation(self, name: str) -> None:
        """Who may create any topic may create this one."""
        if not self.may_cluster(AclOperation.CREATE):
            self.check_topic(AclOperation.CREATE, name)

    def check_deletion(self, name: str) -> None:
        """Who may delete any topic may delete this one."""
        if not self.may_cluster(AclOperation.DELETE):
            self.check_topic(AclOperation.DELETE, name)

    def cluster_operations(self) -> int:
        """What the caller may do to the cluster, as the bit field of KIP-430; for who may describe it."""
        if not self.may_cluster(AclOperation.DESCRIBE):
            return 0
        return self.authorized_operations(AclResourceType.CLUSTER)

    def authorized_operations(self, resource_type: AclResourceType, name: str = CLUSTER_NAME) -> int:
        """What the caller may do to a resource, as the bit field of KIP-430."""
        return sum(
            1 << operation
            for operation in OPERATIONS_OF[resource_type]
            if self._authorizer is None or self.may(operation, resource_type, name)
        )

    def of_cluster(self, operation: AclOperation) -> Resources:
        """All resources, for who may do this to the cluster."""
        self.check_cluster(operation)
        return Resources(self.broker, None, None)

    def as_broker(self) -> Resources:
        """All resources, for a request that brokers send each other."""
        return self.of_cluster(AclOperation.CLUSTER_ACTION)

    @property
    def principal(self) -> Principal | None:
        """Who asks; None: the broker itself."""
        return None if self._caller is None else self._caller.principal

    def of_caller(self) -> dict[str, str | int]:
        """What traces tell of who asks."""
        client_id = getattr(self._caller, "client_id", None)
        return {"client": client_id} if client_id else {}

    @property
    def restricted(self) -> bool:
        """Whether the caller may be refused anything."""
        return self._authorizer is not None

    # topics

    def topic(self, key: TopicKey, operation: AclOperation) -> Topic:
        topics = self.broker.topics
        if isinstance(key, str):
            self.check_topic(operation, key)
            topic = topics.get(key)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NO_TOPIC)
            return topic
        topic = topics.get_by_id(key)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, _NO_TOPIC)
        self.check_topic(operation, topic.name)
        return topic

    def find_topic(self, key: TopicKey, operation: AclOperation) -> Topic | None:
        """None: there is no such topic, or none for the caller."""
        topics = self.broker.topics
        topic = topics.get(key) if isinstance(key, str) else topics.get_by_id(key)
        return topic if topic is not None and self.may_topic(operation, topic.name) else None

    def check_visible(self, topic_ids: Iterable[bytes]) -> None:
        """Who may not see all topics that a group reads is not told of any."""
        for topic_id in topic_ids:
            topic = self.broker.topics.get_by_id(topic_id)
            if topic is not None:
                self.check_topic(AclOperation.DESCRIBE, topic.name)

    def topics(self, operation: AclOperation) -> list[Topic]:
        """All that the caller may do this to."""
        if self._authorizer is None:
            return list(self.broker.topics)
        return [topic for topic in self.broker.topics if self.may_topic(operation, topic.name)]

    def each_topic(self, operation: AclOperation) -> Iterator[Topic | None]:
        """The same one by one, for who pauses in between; None stands for one that the caller may not."""
        for topic in list(self.broker.topics):
            yield topic if self.may_topic(operation, topic.name) else None

    def topic_names(self, operation: AclOperation) -> list[str]:
        return sorted(topic.name for topic in self.topics(operation))

    def has_partition(self, name: str, partition: int) -> bool:
        """For a caller who may ask that of any topic."""
        return self.broker.topics.has_partition(name, partition)

    def log(self, topic: str, partition: int, operation: AclOperation) -> Log:
        return self.broker.log(self.topic(topic, operation), partition)

    def log_of(self, topic: Topic, partition: int) -> Log:
        """Of a topic that was handed out."""
        return self.broker.log(topic, partition)

    def watch_topic(self, topic: Topic, callback: Callable[[], None]) -> Callable[[], None]:
        """Called whenever a topic that was handed out is grown or deleted. Returns what ends that."""
        return self.broker.topics.watch(topic.topic_id, callback)

    def log_directory(self, operation: AclOperation) -> Directory:
        self.check_cluster(operation)
        return self.broker.logs

    def images(self, operation: AclOperation) -> Images:
        self.check_cluster(operation)
        return self.broker.images

    def create_topic(self, new: CheckedTopic) -> Pending[Topic]:
        self.check_creation(new.name)
        self.count_mutations(new.partitions)
        return self.broker.create_topic(new)

    def auto_create_topic(self, name: str) -> Pending[Topic]:
        self.check_creation(name)
        throttle = self._throttle
        if throttle is not None and not throttle.may_mutate(self.broker.settings["num.partitions"]):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        creation = self.broker.auto_create(name)
        audit, caller = self.broker.audit, self._caller
        if audit is not None and caller is not None:
            creation.then(lambda created: _tell_creation(audit, caller, name, created))
        return creation

    def topic_to_delete(self, key: TopicKey) -> Topic:
        """Who may see a topic but not delete it learns whether there is one of this name."""
        if self.may_cluster(AclOperation.DELETE):
            return Resources(self.broker, None, None).topic(key, AclOperation.DELETE)
        if isinstance(key, bytes):
            return self.topic(key, AclOperation.DELETE)
        topic = self.topic(key, AclOperation.DESCRIBE)
        self.check_topic(AclOperation.DELETE, key)
        return topic

    def delete_topic(self, topic: Topic) -> Pending[Topic]:
        self.check_deletion(topic.name)
        self.count_mutations(topic.partitions)
        return self.broker.topics.delete(topic)

    def add_partitions(self, topic: Topic, count: int) -> Pending[Topic]:
        self.check_topic(AclOperation.ALTER, topic.name)
        self.count_mutations(count - topic.partitions)
        return self.broker.topics.add_partitions(topic, count)

    def count_mutations(self, partitions: int) -> None:
        """So many partitions come or go. Raises ApiError if the caller's quota does not allow it."""
        throttle = self._throttle
        if throttle is not None:
            throttle.mutate(partitions)

    @property
    def _throttle(self) -> RequestThrottle | None:
        return None if self._caller is None else self._caller.throttle

    # groups

    def groups(self, group_id: str, operation: AclOperation) -> GroupCoordinator:
        """The coordinator, to do this to this group."""
        self.check_group(operation, group_id)
        return self.broker.groups

    def shares(self, group_id: str, operation: AclOperation) -> Shares:
        """The share partitions in use, to do this to those of this group; topics are asked for apart."""
        self.check_group(operation, group_id)
        return self.broker.shares

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
        listed = self.broker.groups.list_groups(states, types)
        if self.may_cluster(AclOperation.DESCRIBE):
            return listed
        return [
            group
            for group in listed
            if self.may(AclOperation.DESCRIBE, AclResourceType.GROUP, group.group_id)
        ]

    def share_states(self, group_id: str, operation: AclOperation) -> ShareStates:
        """The states of share partitions, to do this to this group's."""
        self.check_group(operation, group_id)
        return self.broker.share_states

    # transactions

    def transactions(self, transactional_id: str, operation: AclOperation) -> TransactionCoordinator:
        """The coordinator, to do this to this producer's transactions."""
        self.check_transactional_id(operation, transactional_id)
        return self.broker.transactions

    def own_transactions(self) -> TransactionCoordinator:
        """The coordinator, for a producer of the broker's own: what it writes to is asked for by itself, and
        its transactional id where that is somebody's.
        """
        return self.broker.transactions

    def list_transactions(
        self, states: Collection[str], producer_ids: Collection[int], duration_ms: int, now_ms: int
    ) -> list[Transaction]:
        listed = self.broker.transactions.list_transactions(states, producer_ids, duration_ms, now_ms)
        if self._authorizer is None:
            return listed
        return [
            transaction
            for transaction in listed
            if self.may(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, transaction.transactional_id)
        ]

    def transactional_writes(self, transactional_id: str) -> TransactionalWrites:
        self.check_transactional_id(AclOperation.WRITE, transactional_id)
        return self.broker.transactional_writes

    def producer_ids(self) -> ProducerIds:
        """For producers without transactions: who may write to a topic needs no more to be one."""
        if not self.may_cluster(AclOperation.IDEMPOTENT_WRITE) and not self.may_any_topic(AclOperation.WRITE):
            self.tell_refusal(AclOperation.IDEMPOTENT_WRITE, AclResourceType.CLUSTER, CLUSTER_NAME)
            raise _refusal(AclOperation.IDEMPOTENT_WRITE, AclResourceType.CLUSTER)
        return self.broker.producer_ids

    # configs and the cluster

    def configs(self, type_: int, name: str, operation: AclOperation) -> DynamicConfigs:
        """To describe or alter those of this resource. What has a type without configs is refused by them."""
        if type_ == ResourceType.TOPIC:
            self.check_topic(operation, name)
        elif type_ == ResourceType.GROUP:
            self.check_group(operation, name)
        else:
            self.check_cluster(operation)
        return self.broker.dynamic_configs

    def config_names(self, type_: ResourceType) -> list[str]:
        """The resources of a type that have configs."""
        self.check_cluster(AclOperation.DESCRIBE_CONFIGS)
        if type_ is ResourceType.TOPIC:
            return self.broker.topics.names()
        return self.broker.dynamic_configs.names(type_)

    def acls(self, operation: AclOperation) -> AclStore:
        self.check_cluster(operation)
        if self.broker.authorizer is None:
            raise ApiError(ErrorCode.SECURITY_DISABLED, "No authorizer is configured.")
        return self.broker.authorizer.acls

    def quotas(self, operation: AclOperation) -> QuotaTable:
        self.check_cluster(operation)
        return self.broker.quotas

    def users(self, operation: AclOperation) -> Users:
        """The stored SCRAM users."""
        self.check_cluster(operation)
        return self.broker.users

    def own_tokens(self, peer: Peer) -> DelegationTokens:
        """Delegation tokens, of which each belongs to its owner and its renewers.

        For who is logged in, and not by a token.
        """
        anonymous = peer.security_protocol == "SSL" and peer.principal == ANONYMOUS
        if peer.by_token or peer.security_protocol == "PLAINTEXT" or anonymous:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        return self.broker.delegation_tokens

    def tokens_for(self, peer: Peer, owner: Principal) -> DelegationTokens:
        """To create one for this owner."""
        tokens = self.own_tokens(peer)
        if owner != peer.principal and not self.may(
            AclOperation.CREATE_TOKENS, AclResourceType.USER, str(owner)
        ):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        return tokens

    def visible_tokens(self, peer: Peer) -> list[DelegationToken]:
        return [
            token
            for token in self.own_tokens(peer).all()
            if token.belongs_to(peer.principal)
            or self.may(AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token.token_id)
            or self.may(AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, str(token.owner))
        ]

    def features(self, operation: AclOperation) -> Features:
        self.check_cluster(operation)
        return self.broker.features

    def catalog(self, operation: AclOperation) -> Catalog:
        self.check_cluster(operation)
        return self.broker.catalog


def _refusal(operation: AclOperation, resource_type: AclResourceType) -> ApiError:
    """It does not name the resource: a topic's name is not told to who has only its id."""
    what = resource_type.name.lower().replace("_", " ")
    return ApiError(_REFUSED[resource_type], f"{operation.name} is not allowed on this {what}.")


def _tell_creation(audit: AuditLog, caller: Caller, name: str, created: Pending[Topic]) -> None:
    audit.change(
        principal=caller.principal,
        address=caller.peer_host,
        api=caller.api_name,
        resource_type=AclResourceType.TOPIC.name,
        resource=name,
        outcome="success" if created.succeeded else "failure",
    )
