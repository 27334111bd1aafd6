"""Limits on the rate of copying. In Kafka they are dynamic settings of brokers and not in its list of static ones."""

from quire.config.allowed import at_least
from quire.config.key import CLUSTER_WIDE, LONG, ConfigKey, table
from quire.config.units import LONG_MAX

QUOTA_KEYS = table(
    ConfigKey("follower.replication.throttled.rate", LONG, LONG_MAX, at_least(0), CLUSTER_WIDE),
    ConfigKey("leader.replication.throttled.rate", LONG, LONG_MAX, at_least(0), CLUSTER_WIDE),
    ConfigKey("replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, at_least(1), CLUSTER_WIDE),
)
