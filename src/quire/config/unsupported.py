"""Settings for features of Kafka that Quire does not have: refused at the start instead of silently ignored.

Some of them can be changed in a running Kafka broker. In Quire these are fixed while a node runs (`can_change`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from quire.config.allowed import Value
from quire.config.errors import ConfigError
from quire.config.key import ConfigKey, Update
from quire.config.listeners import Listener
from quire.config.security_effect import NO_AUTHORIZER
from quire.config.security_keys import SECURITY_KEYS

_NO_TIERS = "Quire has no tiered storage"
_AS_A_WHOLE = -2
"""The local retention is that of the whole log."""
_JAVA = "Quire does not load Java classes"
_ASSIGNORS = (
    "uniform",
    "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
)
_SELECTORS = (
    "org.apache.kafka.common.replica.LeaderSelector",
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
)
"""The classes that Kafka ships. Quire implements them itself."""

_REFUSED: tuple[tuple[str, Callable[[Value], bool], str], ...] = (
    ("remote.log.storage.system.enable", bool, _NO_TIERS),
    ("log.local.retention.bytes", lambda value: value != _AS_A_WHOLE, _NO_TIERS),
    ("log.local.retention.ms", lambda value: value != _AS_A_WHOLE, _NO_TIERS),
    ("authorizer.class.name", bool, NO_AUTHORIZER),
    ("principal.builder.class", lambda value: value != SECURITY_KEYS["principal.builder.class"].default, _JAVA),
    ("config.providers", bool, "Quire does not fetch settings from elsewhere; use QUIRE_ environment variables"),
    ("cordoned.log.dirs", bool, "Quire does not cordon data directories yet"),
    (
        "group.consumer.assignors",
        lambda value: not isinstance(value, tuple) or any(name not in _ASSIGNORS for name in value),
        "Quire has uniform and range, and does not load Java classes",
    ),
    (
        "replica.selector.class",
        lambda value: bool(value) and value not in _SELECTORS,
        "Quire has Kafka's LeaderSelector and RackAwareReplicaSelector, and does not load Java classes",
    ),
    ("transaction.two.phase.commit.enable", bool, "Quire has no two-phase commit with other systems"),
    *(
        (key, bool, _JAVA)
        for key in (
            "alter.config.policy.class.name",
            "client.quota.callback.class",
            "create.topic.policy.class.name",
            "kafka.metrics.reporters",
            "security.providers",
        )
    ),
)
"""(key, whether this value is refused, why)."""

_FIXED = frozenset(
    (
        # Kafka opens and closes listeners while it runs; Quire does not.
        "listeners",
        "listener.security.protocol.map",
        *SECURITY_KEYS,
        # Only the default is supported, so there is nothing to change.
        "config.providers",
        "cordoned.log.dirs",
        "log.local.retention.bytes",
        "log.local.retention.ms",
    )
)


def can_change(key: ConfigKey) -> bool:
    """Whether a broker setting can change while the node runs. Describing and altering settings both ask here."""
    return key.update is not Update.READ_ONLY and key.name not in _FIXED


def check_supported(values: Mapping[str, Value]) -> None:
    for key, is_refused, reason in _REFUSED:
        value = values[key]
        if is_refused(value):
            shown = "true" if value is True else ",".join(value) if isinstance(value, tuple) else value
            raise ConfigError(key, f"{key}={shown} is not supported: {reason}. Remove it.")


def check_supported_listeners(listeners: Iterable[Listener]) -> None:
    """Checked before all other rules about listeners, so that the first error about TLS is that it is not supported."""
    for listener in listeners:
        if listener.security_protocol != "PLAINTEXT":
            raise ConfigError(
                "listeners",
                f"listeners has {listener} with {listener.security_protocol}, which is not supported yet (neither TLS "
                "nor SASL is): use a PLAINTEXT listener.",
            )
