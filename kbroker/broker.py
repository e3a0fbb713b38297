"""The broker: what handlers act on. It owns the parts and how they hang together, not what they do."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from kbroker.catalog.errors import CatalogError, CatalogFull, FactConflict
from kbroker.catalog.rows import CLUSTER_ID, DEAD_LETTERS, QUOTAS, TOPIC, UNCLEAN_STARTS, ConfigRow
from kbroker.cluster.features import Features
from kbroker.cluster.single_node import SingleNode
from kbroker.config.definition import MAX_INT
from kbroker.config.dynamic import DynamicConfigs
from kbroker.config.resources import ResourceType
from kbroker.data_directory import directory_config
from kbroker.operations.consumers.lost_members import drop_lost_members
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.requests.apis import CLIENT_TELEMETRY
from kbroker.requests.fetch_sessions import FetchSessions
from kbroker.requests.long_requests import LongRequests
from kbroker.requests.resources import Resources
from kbroker.requests.traffic import Traffic
from kbroker.storage.config import UNTRACED
from kbroker.storage.counts import LogTotals
from kbroker.storage.errors import DiskFull, Shortage, StorageError
from kbroker.topics.creation import CheckedTopic
from kbroker.topics.names import OFFSETS_TOPIC, READABLE_TOPICS, TRANSACTIONS_TOPIC
from kbroker.topics.registry import Topic, Topics
from kbroker.transactions.producer_ids import ProducerIds
from kbroker.transactions.writes import TransactionalWrites

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog
    from kbroker.catalog.rows import EntryRow
    from kbroker.config.settings import Settings
    from kbroker.coordinators.deadlines import Deadlines
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.coordinators.shares.settings import ShareSettings
    from kbroker.coordinators.shares.states import ShareStates
    from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
    from kbroker.internal_topics.topic import InternalTopic
    from kbroker.network.budget import Budget
    from kbroker.observability.client_metrics.receiver import Receiver
    from kbroker.observability.exposition import Exposition
    from kbroker.observability.health import Health
    from kbroker.observability.otlp import OtlpSender
    from kbroker.observability.traces.recorder import Recorder
    from kbroker.operations.consumers.registry import Consumers
    from kbroker.operations.images import Images
    from kbroker.operations.publishing_state import Publishing
    from kbroker.quotas.connection_rates import ConnectionRates
    from kbroker.quotas.table import QuotaTable
    from kbroker.quotas.throttling import Throttling
    from kbroker.scheduler import Scheduler
    from kbroker.security.audit import AuditLog
    from kbroker.security.authorizer import Authorizer, Caller
    from kbroker.security.delegation_tokens import DelegationTokens
    from kbroker.security.users import Users
    from kbroker.shares.registry import Shares
    from kbroker.storage.config import LogConfig
    from kbroker.storage.interface import Directory, Log
    from kbroker.storage.worker import Worker
    from kbroker.telemetry.clients import ClientTelemetry

logger = logging.getLogger("kbroker.broker")

_RETRY_MS = 1000
_GONE_MS = 1000
"""How long a deleted topic is not created by a mere look at it."""


class Broker:
    def __init__(
        self,
        settings: Settings,
        catalog: Catalog,
        logs: Directory,
        *,
        worker: Worker,
        scheduler: Scheduler,
        budget: Budget,
        clock: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.catalog = catalog
        self.logs = logs
        self.worker = worker
        self.scheduler = scheduler
        self.long_requests = LongRequests(scheduler)
        self.budget = budget
        self.clock = clock
        self.traffic = Traffic(settings["kbroker.slow.request.ms"])
        self.audit = self._open_audit()
        self.own_resources = Resources(self, None, None)  # for what it does of its own accord
        stored = catalog.snapshot()
        self._entries = stored.entries
        self.authorizer = self._open_authorizer(stored.entries)
        cluster_id = stored.facts.get(CLUSTER_ID) or self._make_cluster_id()
        self.cluster = SingleNode(settings, cluster_id, int(stored.facts.get(UNCLEAN_STARTS, "0")))
        self.open_logs: dict[tuple[bytes, int], Log] = {}  # by topic id and partition; of topics that exist
        self.deleted_logs = LogTotals()  # of those that were open once
        if not logs.clean_start:
            self._raise_leader_epochs(stored.facts.get(UNCLEAN_STARTS))
        self.features = Features(catalog, stored.facts)
        self.topics = Topics(catalog, stored.topics, _topic_configs(stored.configs))
        self.topics.on_change(self._topic_changed)
        self.dynamic_configs = DynamicConfigs(settings, catalog, stored.configs, self.topics)
        self.dynamic_configs.on_change(self._configs_changed)
        self.throttling: Throttling | None = None  # while there are quotas of users or client ids
        self.connection_rates: ConnectionRates | None = None  # while new connections may come only so fast
        self._connection_rates: ConnectionRates | None = None  # even while none is in force
        self._quota_rows = [(row.key, row.value) for row in stored.entries if row.table == QUOTAS]
        if self._quota_rows:
            _ = self.quotas
        self.limit_connections()
        self.producer_ids = ProducerIds(catalog)
        self.fetch_sessions = FetchSessions(settings["max.incremental.fetch.session.cache.slots"])
        self._internal_topics: dict[bytes, InternalTopic] = {}  # by topic id; those that were asked for
        self._auto_creating: dict[str, Pending[Topic]] = {}
        self._deleted_ms: dict[str, int] = {}  # when topics were deleted that nobody's look may bring back
        self.deadlines: list[Deadlines] = []
        self.transactional_writes = TransactionalWrites(self)
        if stored.groups_stored or stored.transactions_stored:
            _ = self.groups, self.transactions  # what they know has its deadlines
        if stored.groups_stored:
            drop_lost_members(self)
        if stored.shares_stored:
            self._drop_orphans(self.share_states)  # only now can they be loaded
        logs.config_source = self._log_config_of
        logs.reconfigure(directory_config(settings))  # with what was altered in an earlier run
        for row in stored.deleted_topics:
            self._remove_files(row.name, row.topic_id, row.partitions)
        self._report_strangers()
        self._restore_missing()
        self.has_unfinished_dead_letters = any(row.table == DEAD_LETTERS for row in stored.entries)
        if self.has_unfinished_dead_letters:
            scheduler.soon(self._finish_dead_letters)

    def _finish_dead_letters(self) -> None:
        _ = self.shares

    def _open_audit(self) -> AuditLog | None:
        if not self.settings["kbroker.audit.log.file"]:
            return None
        from kbroker.security.audit import open_audit

        return open_audit(self.settings, self.worker, self.scheduler, self.clock)

    # coordinators: where nothing is stored for them, they come to be with their first request

    @cached_property
    def groups(self) -> GroupCoordinator:
        from kbroker.groups.opening import open_groups

        self.make_internal_topic(OFFSETS_TOPIC)
        return open_groups(self)

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        from kbroker.transactions.opening import open_transactions

        self.make_internal_topic(TRANSACTIONS_TOPIC)
        return open_transactions(self)

    @cached_property
    def share_states(self) -> ShareStates:
        from kbroker.coordinators.shares.states import ShareStates

        return ShareStates(self.catalog.share_state_store(self.scheduler))

    @cached_property
    def share_settings(self) -> Callable[[str], ShareSettings]:
        """Of the partitions of a share group, by its id."""
        from kbroker.groups.share_settings import open_share_settings

        return open_share_settings(self)

    @cached_property
    def shares(self) -> Shares:
        from kbroker.shares.opening import open_shares

        return open_shares(self)

    @cached_property
    def publishing(self) -> Publishing:
        """What publishers without Kafka's protocol need kept for them."""
        from kbroker.operations.publishing_state import Publishing

        return Publishing(self)

    @cached_property
    def consumers(self) -> Consumers:
        """Those of clients that do not speak Kafka's protocol."""
        from kbroker.operations.consumers.registry import Consumers

        return Consumers(self)

    @cached_property
    def exposition(self) -> Exposition:
        """The metrics, for who asks for them."""
        from kbroker.observability.exposition import Exposition

        return Exposition(self)

    @cached_property
    def traces(self) -> Recorder:
        """Of topics that are traced."""
        from kbroker.observability.traces.opening import open_traces

        return open_traces(self)

    @cached_property
    def otlp(self) -> OtlpSender:
        """For all that is exported by OTLP."""
        from kbroker.observability.otlp import open_otlp

        return open_otlp(self.settings)

    def known_traces(self) -> Recorder | None:
        """The same, for who looks: None if there are none, nor any of an earlier run."""
        if "traces" in self.__dict__:
            return self.traces
        from kbroker.observability.traces.opening import has_ring

        return self.traces if has_ring(self) else None

    @cached_property
    def telemetry(self) -> ClientTelemetry:
        """Which clients are asked for which metrics."""
        from kbroker.telemetry.opening import open_telemetry

        return open_telemetry(self, self.client_metrics)

    @cached_property
    def client_metrics(self) -> Receiver:
        """What clients pushed."""
        from kbroker.observability.client_metrics.opening import open_receiver

        return open_receiver(self)

    @cached_property
    def images(self) -> Images:
        from kbroker.operations.images import Images

        return Images(self.logs, self.catalog, self.settings, self.scheduler, self.clock)

    @cached_property
    def health(self) -> Health:
        from kbroker.observability.health import Health

        return Health(self)

    # quotas

    @cached_property
    def quotas(self) -> QuotaTable:
        from kbroker.quotas.opening import open_quotas

        return open_quotas(self, self._quota_rows)

    def limit_connections(self) -> None:
        """Rates of new connections were set or altered."""
        if "quotas" not in self.__dict__ and self._connection_rates is None and not self._rates_are_set():
            return
        from kbroker.quotas.opening import connection_rates_in_force, open_connection_rates

        if self._connection_rates is None:
            self._connection_rates = open_connection_rates(self.settings)
        self.connection_rates = connection_rates_in_force(
            self._connection_rates, self.settings, self.__dict__.get("quotas")
        )

    def _rates_are_set(self) -> bool:
        name = "max.connection.creation.rate"
        return any(
            self.settings.of_listener(listener.name, name) < MAX_INT
            for listener in self.settings.all_listeners
        )

    # who comes

    def stored_entries(self, table: str) -> dict[str, str]:
        """Those of a table of the catalog at the start, for the part that owns it."""
        return {entry.key: entry.value for entry in self._entries if entry.table == table}

    @cached_property
    def users(self) -> Users:
        from kbroker.security.users import TABLE, Users

        return Users(self.catalog, self.stored_entries(TABLE))

    @cached_property
    def delegation_tokens(self) -> DelegationTokens:
        from kbroker.authentication.opening import open_delegation_tokens

        return open_delegation_tokens(self)

    # partitions

    def log(self, topic: Topic, partition: int) -> Log:
        """The log of an existing partition."""
        log = self.open_logs.get((topic.topic_id, partition))
        if log is None:
            if not 0 <= partition < topic.partitions:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            config = self.settings.topic_config(topic.configs)
            epoch = self.cluster.leader_epoch(topic)
            if topic.name in READABLE_TOPICS:
                log = self._internal_topic(topic).log(topic, partition, config, epoch)
            else:
                log = self.logs.log(topic.topic_id, topic.name, partition, config, epoch)
                if config.trace_sampling != UNTRACED:
                    log.trace = self.traces.trace_of(log, config.trace_sampling)
            self.open_logs[topic.topic_id, partition] = log
        return log

    def resources(self, caller: Caller) -> Resources:
        """What this caller may reach."""
        return Resources(self, caller, self.authorizer)

    def find_log(self, topic: str, partition: int) -> Log:
        found = self.topics.get(topic)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.log(found, partition)

    def create_topic(self, new: CheckedTopic) -> Pending[Topic]:
        """Make a topic that is checked. The result comes when it is durable and visible."""
        epoch_base = self.cluster.first_leader_epoch_base()
        return self.topics.create(new.name, new.partitions, new.configs, epoch_base)

    def auto_create(self, name: str) -> Pending[Topic]:
        """Make the topic that somebody asked for, with the broker's defaults; or join who already does.

        Raises ApiError while the name is taken by a creation or a deletion under way, and for a moment after
        the latter: who looks whether a topic is gone must not bring it back.
        """
        creation = self._auto_creating.get(name)
        if creation is None:
            if self.topics.is_reserved(name) or self._was_just_deleted(name):
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            made = self.create_topic(self._auto_created_topic(name))
            creation = self._auto_creating[name] = Pending()
            made.then(lambda made: self._auto_created(name, made))
        return creation

    def _auto_created_topic(self, name: str) -> CheckedTopic:
        if name not in READABLE_TOPICS:
            return CheckedTopic(name, self.settings["num.partitions"], {})
        from kbroker.internal_topics.opening import new_internal_topic

        return new_internal_topic(name, self.settings)

    def make_internal_topic(self, name: str) -> None:
        """So that it can be read. Where that cannot be stored now, whoever asks for it tries again."""
        if self.topics.get(name) is None:
            with suppress(ApiError):
                self.auto_create(name)

    def _internal_topic(self, topic: Topic) -> InternalTopic:
        found = self._internal_topics.get(topic.topic_id)
        if found is None:
            from kbroker.internal_topics.opening import open_internal_topic

            found = self._internal_topics[topic.topic_id] = open_internal_topic(self, topic)
        return found

    def _auto_created(self, name: str, made: Pending[Topic]) -> None:
        creation = self._auto_creating.pop(name)
        try:
            topic = made.result()
        except ApiError as error:
            # Another broker made it, of which this one has not heard yet: who asked asks again.
            unheard = error.code is ErrorCode.TOPIC_ALREADY_EXISTS
            creation.fail(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) if unheard else error)
        except Exception as error:
            creation.fail(error)
        else:
            creation.resolve(topic)

    def _was_just_deleted(self, name: str) -> bool:
        deleted_ms = self._deleted_ms.get(name)
        return deleted_ms is not None and self.clock() - deleted_ms < _GONE_MS

    def _note_deletion(self, name: str) -> None:
        now_ms = self.clock()
        self._deleted_ms.pop(name, None)
        self._deleted_ms[name] = now_ms
        while now_ms - self._deleted_ms[oldest := next(iter(self._deleted_ms))] >= _GONE_MS:
            del self._deleted_ms[oldest]

    def _configs_changed(self, resource_type: ResourceType, name: str, _: frozenset[str]) -> None:
        if resource_type is ResourceType.TOPIC:
            topic = self.topics.get(name)
            if topic is not None:
                self._reconfigure(topic)
        elif resource_type is ResourceType.BROKER:  # the defaults of topics may be among them
            self.logs.reconfigure(directory_config(self.settings))
            self.limit_connections()
            for topic in self.topics:
                self._reconfigure(topic)

    def _reconfigure(self, topic: Topic) -> None:
        config = self.settings.topic_config(topic.configs)
        for partition in range(topic.partitions):
            log = self.open_logs.get((topic.topic_id, partition))
            if log is not None:
                if log.config.trace_sampling != config.trace_sampling:
                    traced = config.trace_sampling != UNTRACED
                    log.trace = self.traces.trace_of(log, config.trace_sampling) if traced else None
                log.config = config

    def has_feature(self, name: str) -> bool:
        """Whether the APIs that belong to it are offered."""
        if name == CLIENT_TELEMETRY:
            return bool(self.settings["kbroker.telemetry.enable"])
        return self.features.level(name) > 0

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """The configs that were set on a group."""
        return self.dynamic_configs.configs(ResourceType.GROUP, group_id)

    def time_jumped(self) -> None:
        """The clock is further than the scheduler thinks: do what is due now."""
        for deadlines in self.deadlines:
            deadlines.catch_up()

    def close(self) -> None:
        """Nothing more is asked of it; what it owns is closed by the server."""
        if "consumers" in self.__dict__:
            self.consumers.close()
        if "publishing" in self.__dict__:
            self.publishing.close()
        if "groups" in self.__dict__:
            self.groups.close()
        if "transactions" in self.__dict__:
            self.transactions.close()
        if "share_states" in self.__dict__:
            self.share_states.close()

    # internals

    def _open_authorizer(self, stored: Sequence[EntryRow]) -> Authorizer | None:
        """None: everybody may do everything."""
        if not self.settings["authorizer.class.name"]:
            return None
        from kbroker.security.acl_authorizer import AclAuthorizer
        from kbroker.security.acl_store import TABLE, AclStore

        return AclAuthorizer(
            AclStore(self.catalog, (key for table, key, _ in stored if table == TABLE)),
            (user.strip() for user in self.settings["super.users"].split(";")),
            allow_without_acls=self.settings["allow.everyone.if.no.acl.found"],
        )

    def _drop_orphans(self, states: ShareStates) -> None:
        """States whose group was deleted just before a crash, or was not stored any more."""
        known = {group_id for group_id, group in self.groups.groups.items() if group.type == "share"}
        for group_id in states.groups() - known:
            states.delete_group(group_id)

    def _make_cluster_id(self) -> str:
        configured = self.settings["kbroker.cluster.id"]
        cluster_id = (
            str(configured) if configured else base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        )
        try:
            self.catalog.save_fact(CLUSTER_ID, cluster_id, expected=None).result()
        except FactConflict as conflict:
            return conflict.found or cluster_id  # another broker of the cluster started first
        return cluster_id

    def _raise_leader_epochs(self, known: str | None) -> None:
        """What was read before the crash and is gone now must not be confused with what comes.

        `known`: how many unclean starts the catalog has counted. Where one more cannot be saved, nothing is
        appended until it is.
        """
        self.cluster.unclean_starts = int(known or 0) + 1
        try:
            self._save_unclean_starts(known).result()
        except FactConflict as conflict:
            self._raise_leader_epochs(conflict.found)
        except CatalogFull as error:
            logger.warning("no log takes records until there is room: %s", error)
            self.logs.hold_appends(DiskFull(str(error)))
            self.scheduler.after(_RETRY_MS, lambda: self._raise_leader_epochs_later(known))

    def _raise_leader_epochs_later(self, known: str | None) -> None:
        def saved(saving: Pending[None]) -> None:
            try:
                saving.result()
            except FactConflict as conflict:
                self.cluster.unclean_starts = int(conflict.found or 0) + 1
                for (topic_id, _), log in self.open_logs.items():
                    topic = self.topics.get_by_id(topic_id)
                    if topic is not None:
                        log.set_leader_epoch(self.cluster.leader_epoch(topic))
                self._raise_leader_epochs_later(conflict.found)
            except CatalogError:
                self.scheduler.after(_RETRY_MS, lambda: self._raise_leader_epochs_later(known))
            else:
                logger.warning("logs take records again")
                self.logs.hold_appends(None)

        self._save_unclean_starts(known).then(saved)

    def _save_unclean_starts(self, known: str | None) -> Pending[None]:
        return self.catalog.save_fact(UNCLEAN_STARTS, str(self.cluster.unclean_starts), expected=known)

    def _report_strangers(self) -> None:
        """Partition directories that belong to no topic here are neither adopted nor deleted."""
        strangers = sorted({name for name, _ in self.logs.partitions() if self.topics.get(name) is None})
        if strangers:
            logger.warning(
                "the data directory holds partitions of unknown topics, which are left alone "
                "(kbroker import adopts them): %s",
                ", ".join(strangers[:10]),
            )

    def _restore_missing(self) -> None:
        """Directories that are gone though their topics are not."""
        for name, partition in self.logs.missing():
            if self.topics.has_partition(name, partition):
                logger.error("the directory of %s-%d is gone, and all its records with it", name, partition)
                self.logs.restore(name, partition)
            else:
                self.logs.forget(name, partition)

    def _log_config_of(self, topic_name: str) -> LogConfig | None:
        topic = self.topics.get(topic_name)
        return None if topic is None else self.settings.topic_config(topic.configs)

    def _topic_changed(self, topic: Topic, exists: bool) -> None:
        if not exists:
            self._note_deletion(topic.name)
            internal = self._internal_topics.pop(topic.topic_id, None)
            if internal is not None:
                internal.close()
            for partition in range(topic.partitions):
                log = self.open_logs.pop((topic.topic_id, partition), None)
                if log is not None:
                    self.deleted_logs.add_work(log)
                if "traces" in self.__dict__:
                    self.traces.forget(topic.topic_id, partition)
            self._remove_files(topic.name, topic.topic_id, topic.partitions)
            if "share_states" in self.__dict__:
                self.share_states.delete_topic(topic.topic_id)

    def _remove_files(self, name: str, topic_id: bytes, partitions: int) -> None:
        try:
            for partition in range(partitions):
                self.logs.delete_partition(name, partition, topic_id)
        except Shortage:
            self.scheduler.after(_RETRY_MS, lambda: self._remove_files(name, topic_id, partitions))
        except StorageError as error:
            # The catalog remembers the deleted topic: the next start tries again.
            logger.error("files of the deleted topic %s are left: %s", name, error)
        else:
            self.catalog.forget_deleted_topic(topic_id)


def _topic_configs(rows: Sequence[ConfigRow]) -> dict[str, dict[str, str]]:
    by_topic: dict[str, dict[str, str]] = {}
    for resource_type, resource_name, name, value in rows:
        if resource_type == TOPIC:
            by_topic.setdefault(resource_name, {})[name] = value
    return by_topic
