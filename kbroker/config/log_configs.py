"""How logs are kept: the broker's defaults for topics, and the work on all of them."""

from __future__ import annotations

import sys

from kbroker.config.definition import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    ConfigDef,
    Field,
    Update,
    accepted,
    honoured,
)
from kbroker.config.topic_configs import TOPIC_CONFIGS
from kbroker.config.validators import ListOf, Range
from kbroker.storage.config import DirectoryConfig

_FROM_0 = Range(0)
_FROM_1 = Range(1)
_HOUR_MS = 3_600_000


def _default_of(topic_config: ConfigDef) -> ConfigDef:
    """The broker config that is a topic config's default has its type, its default and its values."""
    (name,) = topic_config.synonyms
    which = "of this name" if name == topic_config.name else topic_config.name
    return topic_config._replace(
        name=name, doc=f"Default of the topic config {which}.", synonyms=(), field=None
    )


def _in_hours(topic_config: str) -> int:
    default = TOPIC_CONFIGS[topic_config].default
    assert isinstance(default, int)
    return default // _HOUR_MS


def _directory(field: str) -> Field:
    """Obeyed by the data directory, with the default that stands in DirectoryConfig."""
    return Field(DirectoryConfig, field)


# fmt: off
LOG_CONFIGS = (
    *(_default_of(each) for each in TOPIC_CONFIGS.values() if len(each.synonyms) == 1),
    accepted("cordoned.log.dirs", LIST, (),
        "Directories that take no new partitions.", ListOf(), Update.PER_BROKER),
    honoured("log.cleaner.backoff.ms", LONG, _directory("cleaner_backoff_ms"),
        "How long to wait with the next look when no log is worth compacting.", _FROM_0, Update.CLUSTER_WIDE),
    honoured("log.cleaner.dedupe.buffer.size", LONG, _directory("cleaner_dedupe_buffer_bytes"),
        "Memory for the keys of one compaction.", None, Update.CLUSTER_WIDE),
    honoured("log.cleaner.enable", BOOLEAN, _directory("cleaner_enable"),
        "Whether logs are compacted at all."),
    honoured("log.cleaner.io.buffer.load.factor", DOUBLE, _directory("cleaner_dedupe_load_factor"),
        "How full the memory for keys may get.", None, Update.CLUSTER_WIDE),
    accepted("log.cleaner.io.buffer.size", INT, 524_288,
        "Bytes that Kafka's log cleaner reads and writes at once.", _FROM_0, Update.CLUSTER_WIDE),
    accepted("log.cleaner.io.max.bytes.per.second", DOUBLE, sys.float_info.max,
        "Read and write rate of Kafka's log cleaner.", None, Update.CLUSTER_WIDE),
    accepted("log.cleaner.threads", INT, 1,
        "Threads that compact logs in Kafka.", _FROM_0, Update.CLUSTER_WIDE),
    honoured("log.dir", LIST, ("data",),
        "The data directory, if log.dirs is not set.", ListOf(allow_empty=False)),
    accepted("log.dir.failure.timeout.ms", LONG, 30_000,
        "Time for Kafka to report a failed directory.", _FROM_1),
    honoured("log.dirs", LIST, None,
        "The data directory. kbroker uses one, the first.", ListOf(allow_empty=False)),
    honoured("log.flush.interval.ms", LONG, None,
        "Default of the topic config flush.ms.", None, Update.CLUSTER_WIDE),
    honoured("log.flush.offset.checkpoint.interval.ms", INT,
        _directory("flush_offset_checkpoint_interval_ms"),
        "How often recovery points are written to their checkpoint.", _FROM_0),
    honoured("log.flush.scheduler.interval.ms", LONG, TOPIC_CONFIGS["flush.ms"].default,
        "Default of log.flush.interval.ms. Kafka's own default is never."),
    accepted("log.flush.start.offset.checkpoint.interval.ms", INT, 60_000,
        "How often log start offsets are written to their checkpoint.", _FROM_0),
    honoured("log.initial.task.delay.ms", LONG, _directory("retention_initial_delay_ms"),
        "Time after the start before retention is first looked at.", _FROM_0, internal=True),
    honoured("log.retention.check.interval.ms", LONG, _directory("retention_check_interval_ms"),
        "How often old segments are looked for.", _FROM_1),
    honoured("log.retention.hours", INT, _in_hours("retention.ms"),
        "Default of the topic config retention.ms, in hours, if neither minutes nor ms is set."),
    honoured("log.retention.minutes", INT, None,
        "Default of the topic config retention.ms, in minutes, if log.retention.ms is not set."),
    honoured("log.retention.ms", LONG, None,
        "Default of the topic config retention.ms.", None, Update.CLUSTER_WIDE),
    honoured("log.roll.hours", INT, _in_hours("segment.ms"),
        "Default of the topic config segment.ms, in hours, if log.roll.ms is not set.", _FROM_1),
    honoured("log.roll.jitter.hours", INT, _in_hours("segment.jitter.ms"),
        "Default of the topic config segment.jitter.ms, in hours, if log.roll.jitter.ms is not set.",
        _FROM_0),
    honoured("log.roll.jitter.ms", LONG, None,
        "Default of the topic config segment.jitter.ms.", None, Update.CLUSTER_WIDE),
    honoured("log.roll.ms", LONG, None,
        "Default of the topic config segment.ms.", None, Update.CLUSTER_WIDE),
    accepted("num.recovery.threads.per.data.dir", INT, 2,
        "Threads that recover logs at start in Kafka.", _FROM_1, Update.CLUSTER_WIDE),
    accepted("unclean.leader.election.interval.ms", LONG, 300_000,
        "How often Kafka looks for partitions in need of an unclean election.", _FROM_1, internal=True),
)
