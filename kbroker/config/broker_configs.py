"""Every broker config: all of Kafka 4.3's, and kbroker's own under ``kbroker.``."""

from __future__ import annotations

import re

from kbroker.config.cluster_configs import CLUSTER_CONFIGS
from kbroker.config.coordinator_configs import COORDINATOR_CONFIGS
from kbroker.config.definition import LONG, MAX_LONG, ConfigDef, Update, accepted, table
from kbroker.config.log_configs import LOG_CONFIGS
from kbroker.config.security_configs import SECURITY_CONFIGS
from kbroker.config.server_configs import SERVER_CONFIGS
from kbroker.config.validators import Range

BROKER_CONFIGS = table(SERVER_CONFIGS, LOG_CONFIGS, COORDINATOR_CONFIGS, SECURITY_CONFIGS, CLUSTER_CONFIGS)

# fmt: off
# Known at run time only: the throttles that Kafka's reassignment tool sets and removes.
THROTTLE_CONFIGS = table((
    accepted("follower.replication.throttled.rate", LONG, MAX_LONG,
        "Bytes per second of throttled replication that a follower takes.", Range(0), Update.CLUSTER_WIDE),
    accepted("leader.replication.throttled.rate", LONG, MAX_LONG,
        "Bytes per second of throttled replication that a leader gives.", Range(0), Update.CLUSTER_WIDE),
    accepted("replica.alter.log.dirs.io.max.bytes.per.second", LONG, MAX_LONG,
        "Bytes per second of moves between directories.", Range(0), Update.CLUSTER_WIDE),
))
# fmt: on

# One quantity in several units, the strongest name first.
UNITS: tuple[tuple[str, ...], ...] = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
ALIASES: tuple[tuple[str, ...], ...] = (("log.dirs", "log.dir"), ("node.id", "broker.id"))

_LISTENER_PREFIX = r"listener\.name\.[^.]*\.(.*)"
_MECHANISMS = r"(gssapi|oauthbearer|plain|scram-sha-256|scram-sha-512)\.(.*)"


def base_name(name: str) -> str:
    """The config that a name with the prefix of one listener, or of a SASL mechanism there, stands for.

    Else the name itself.
    """
    match = re.fullmatch(_LISTENER_PREFIX, name)
    if match is None:
        return name
    of_mechanism = re.fullmatch(_MECHANISMS, match[1])
    return match[1] if of_mechanism is None else of_mechanism[2]


def broker_definition(name: str) -> ConfigDef | None:
    base = base_name(name)
    return BROKER_CONFIGS.get(base) or THROTTLE_CONFIGS.get(base)
