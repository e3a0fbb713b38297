"""Every broker config: all of Kafka 4.3's, and kbroker's own under ``kbroker.``."""

from __future__ import annotations

from kbroker.config.cluster_configs import CLUSTER_CONFIGS
from kbroker.config.coordinator_configs import COORDINATOR_CONFIGS
from kbroker.config.definition import table
from kbroker.config.log_configs import LOG_CONFIGS
from kbroker.config.security_configs import SECURITY_CONFIGS
from kbroker.config.server_configs import SERVER_CONFIGS

BROKER_CONFIGS = table(SERVER_CONFIGS, LOG_CONFIGS, COORDINATOR_CONFIGS, SECURITY_CONFIGS, CLUSTER_CONFIGS)

# One quantity under several names, the strongest first.
SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.dirs", "log.dir"),
    ("node.id", "broker.id"),
)
