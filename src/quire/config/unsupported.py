"""What Kafka can be told to do and Quire cannot: refused at the start, rather than ignored and missed later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from quire.config.allowed import Value
from quire.config.errors import ConfigError
from quire.config.listeners import Listener

if TYPE_CHECKING:
    from quire.config.topology import Topology

_NO_TIERS = "Quire has no tiered storage"
_AS_A_WHOLE = -2
"""A local retention that is that of the whole log."""
_JAVA = "Quire does not load Java classes"
_ASSIGNORS = (
    "uniform",
    "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
)

_REFUSED: tuple[tuple[str, Callable[[Value], bool], str], ...] = (
    ("remote.log.storage.system.enable", bool, _NO_TIERS),
    ("log.local.retention.bytes", lambda value: value != _AS_A_WHOLE, _NO_TIERS),
    ("log.local.retention.ms", lambda value: value != _AS_A_WHOLE, _NO_TIERS),
    ("authorizer.class.name", bool, "Quire does not check who may do what yet"),
    ("config.providers", bool, "Quire does not fetch settings from elsewhere; use QUIRE_ environment variables"),
    ("cordoned.log.dirs", bool, "Quire does not cordon data directories yet"),
    (
        "group.consumer.assignors",
        lambda value: not isinstance(value, tuple) or any(name not in _ASSIGNORS for name in value),
        "Quire has uniform and range, and does not load Java classes",
    ),
    ("transaction.two.phase.commit.enable", bool, "Quire has no two-phase commit with other systems"),
    *(
        (key, bool, _JAVA)
        for key in (
            "alter.config.policy.class.name",
            "client.quota.callback.class",
            "create.topic.policy.class.name",
            "kafka.metrics.reporters",
            "replica.selector.class",
            "security.providers",
        )
    ),
)
"""(key, whether this value is refused, why)."""


def check_supported(values: Mapping[str, Value]) -> None:
    for key, is_refused, reason in _REFUSED:
        value = values[key]
        if is_refused(value):
            shown = "true" if value is True else ",".join(value) if isinstance(value, tuple) else value
            raise ConfigError(key, f"{key}={shown} is not supported: {reason}. Remove it.")


def check_supported_listeners(listeners: Iterable[Listener]) -> None:
    """Asked before anything else about listeners, so that who wants TLS learns that it is not there, not what else."""
    for listener in listeners:
        if listener.security_protocol != "PLAINTEXT":
            raise ConfigError(
                "listeners",
                f"listeners has {listener} with {listener.security_protocol}, which is not supported yet (neither TLS "
                "nor SASL is): use a PLAINTEXT listener.",
            )


def check_supported_topology(topology: Topology) -> None:
    if not (topology.is_broker and topology.is_controller):
        raise ConfigError(
            "process.roles", "process.roles with one role is not supported yet: set it to broker,controller."
        )
    if len(topology.voters) > 1:
        raise ConfigError(
            "controller.quorum.voters",
            f"controller.quorum.voters lists {len(topology.voters)} nodes, which is not supported yet: list this one.",
        )
