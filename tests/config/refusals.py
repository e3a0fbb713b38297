"""Alterations of configs that Apache Kafka 4.3.1 refuses, and the code and sentence it does it with.

Resource type, resource name, change, error code, message. There is a topic `orders`; the broker is number 1.
"""

# ruff: noqa: E501 (sentences are compared as they are)

from __future__ import annotations

SET, DELETE, APPEND, SUBTRACT = range(4)

# fmt: off
REFUSALS = [
    (2, "orders", ("nope", SET, "1"), "INVALID_CONFIG", "Unknown topic config name: nope"),
    (2, "orders", ("retention.ms", SET, "x"), "INVALID_CONFIG", "Invalid value x for configuration retention.ms: Not a number of type LONG"),
    (2, "orders", ("retention.ms", SET, None), "INVALID_REQUEST", "Null value not supported for : retention.ms"),
    (2, "orders", ("retention.ms", APPEND, "5"), "INVALID_CONFIG", "Can't APPEND to key retention.ms because its type is not LIST."),
    (2, "orders", ("nope", SUBTRACT, "5"), "INVALID_CONFIG", "Can't SUBTRACT to key nope because its type is not LIST."),
    (2, "orders", ("retention.ms", 4, "1"), "UNKNOWN_SERVER_ERROR", None),
    (2, "gone", ("retention.ms", SET, "1"), "UNKNOWN_TOPIC_OR_PARTITION", "The topic 'gone' does not exist."),
    (2, "gone", ("retention.ms", SET, "x"), "INVALID_CONFIG", "Invalid value x for configuration retention.ms: Not a number of type LONG"),
    (2, "", ("retention.ms", SET, "1"), "INVALID_REQUEST", "Default topic resources are not allowed."),
    (4, "1", ("num.partitions", SET, "3"), "INVALID_REQUEST", "Cannot update these configs dynamically: [num.partitions]"),
    (4, "", ("log.retention.hours", SET, "3"), "INVALID_REQUEST", "Cannot update these configs dynamically: [log.retention.hours]"),
    (4, "1", ("log.retention.ms", SET, "x"), "INVALID_REQUEST", "Invalid value x for configuration log.retention.ms: Not a number of type LONG"),
    (4, "1", ("log.retention.ms", SET, "0"), "INVALID_REQUEST", "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
    (4, "1", ("ssl.keystore.location", SET, "x"), "INVALID_REQUEST", "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.location]"),
    (4, "", ("sasl.jaas.config", SET, "x"), "INVALID_REQUEST", "Cannot update these configs at default cluster level, broker id must be specified: [sasl.jaas.config]"),
    (4, "", ("listener.name.x.ssl.keystore.location", SET, "x"), "INVALID_REQUEST", "Cannot update these configs at default cluster level, broker id must be specified: [listener.name.x.ssl.keystore.location]"),
    (4, "1", ("leader.replication.throttled.rate", SET, "-1"), "INVALID_REQUEST", "Invalid value -1 for configuration leader.replication.throttled.rate: Value must be at least 0"),
    (4, "1", ("log.retention.ms", APPEND, "1"), "INVALID_CONFIG", "Config value append is not allowed for config key: log.retention.ms"),
    (4, "1", ("nope", SUBTRACT, "1"), "INVALID_CONFIG", "Unknown config name: nope"),
    (4, "1", ("log.retention.ms", 7, "1"), "INVALID_REQUEST", "Unknown operations type 7"),
    (4, "2", ("x", SET, "1"), "INVALID_REQUEST", "Unexpected broker id, expected 1, but received 2"),
    (4, "abc", ("x", SET, "1"), "INVALID_REQUEST", "Node id must be an integer, but it is: abc"),
    (16, "m", ("interval.ms", SET, "99"), "INVALID_REQUEST", "Invalid value 99 for interval.ms, interval must be between 100 and 3600000 (1 hour)"),
    (16, "m", ("interval.ms", SET, "x"), "INVALID_CONFIG", "Invalid value x for configuration interval.ms: Not a number of type INT"),
    (16, "m", ("match", SET, "x"), "INVALID_CONFIG", "Illegal client matching pattern: x"),
    (16, "m", ("match", SET, "foo=1"), "INVALID_CONFIG", "Illegal client matching pattern: foo=1"),
    (16, "m", ("match", SET, "client_id=["), "INVALID_CONFIG", "Illegal client matching pattern: client_id=["),
    (16, "m", ("match", SET, "client_id=a=b"), "INVALID_CONFIG", "Illegal client matching pattern: client_id=a=b"),
    (16, "m", ("match", SET, "client_id="), "INVALID_CONFIG", "Illegal client matching pattern: client_id="),
    (16, "m", ("metrics", APPEND, "c"), "INVALID_CONFIG", "Can't APPEND to key metrics because its type is not LIST."),
    (16, "m", ("metrics", SET, "a,,b"), "INVALID_CONFIG", "Configuration 'metrics' values must not be empty."),
    (16, "m", ("nope", SET, "1"), "INVALID_REQUEST", "Unknown client metrics configuration: nope"),
    (16, "", ("metrics", SET, "a"), "INVALID_REQUEST", "Subscription name can't be empty"),
    (32, "g", ("consumer.session.timeout.ms", SET, "x"), "INVALID_CONFIG", "Invalid value x for configuration consumer.session.timeout.ms: Not a number of type INT"),
    (32, "g", ("consumer.session.timeout.ms", SET, "1"), "INVALID_CONFIG", "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms"),
    (32, "g", ("consumer.session.timeout.ms", SET, "60001"), "INVALID_CONFIG", "consumer.session.timeout.ms must be less than or equal to group.consumer.max.session.timeout.ms"),
    (32, "g", ("consumer.heartbeat.interval.ms", SET, "4999"), "INVALID_CONFIG", "consumer.heartbeat.interval.ms must be greater than or equal to group.consumer.min.heartbeat.interval.ms"),
    (32, "g", ("streams.num.standby.replicas", SET, "3"), "INVALID_CONFIG", "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas"),
    (32, "g", ("share.record.lock.duration.ms", SET, "14999"), "INVALID_CONFIG", "share.record.lock.duration.ms must be greater than or equal to group.share.min.record.lock.duration.ms"),
    (32, "g", ("share.partition.max.record.locks", SET, "99"), "INVALID_CONFIG", "Invalid value 99 for configuration share.partition.max.record.locks: Value must be at least 100"),
    (32, "g", ("nope", SET, "1"), "INVALID_CONFIG", "Unknown group config name: nope"),
    (32, "g", ("consumer.session.timeout.ms", APPEND, "5"), "INVALID_CONFIG", "Can't APPEND to key consumer.session.timeout.ms because its type is not LIST."),
    (8, "1", ("root", SET, "info"), "INVALID_CONFIG", "Cannot set the log level of root to info as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"),
    (8, "1", ("root", DELETE, None), "INVALID_REQUEST", "Removing the log level of the root logger is not allowed"),
    (8, "1", ("root", APPEND, "INFO"), "INVALID_REQUEST", "APPEND operation is not allowed for the BROKER_LOGGER resource"),
    (8, "1", ("root", 9, "INFO"), "UNKNOWN_SERVER_ERROR", None),
    (8, "1", ("no.such.logger", SET, "INFO"), "INVALID_CONFIG", "Logger no.such.logger does not exist!"),
    (8, "", ("root", SET, "INFO"), "INVALID_REQUEST", "Node id must be an integer, but it is: "),
    (8, "2", ("root", SET, "INFO"), "INVALID_REQUEST", "Unexpected node id. Expected 1, but received 2"),
    (32, "", ("consumer.session.timeout.ms", SET, "50000"), "INVALID_REQUEST", "Default group resources are not allowed."),
    (0, "1", ("x", SET, "1"), "INVALID_REQUEST", "Unknown resource type 0"),
    (1, "1", ("x", SET, "1"), "INVALID_REQUEST", "Unknown resource type 1"),
    (3, "1", ("x", SET, "1"), "INVALID_REQUEST", "Unknown resource type 3"),
    (5, "1", ("x", SET, "1"), "INVALID_REQUEST", "Unknown resource type 5"),
    (33, "1", ("x", SET, "1"), "INVALID_REQUEST", "Unknown resource type 33"),
    (-1, "1", ("x", SET, "1"), "INVALID_REQUEST", "Unknown resource type -1"),
]
