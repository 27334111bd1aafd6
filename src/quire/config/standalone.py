"""The default configuration of `quire start`: one node that is both broker and controller.

The result is an ordinary set of static settings, as in the server.properties of a single Kafka node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quire.config.errors import ConfigError

CONTROLLER_NAME = "CONTROLLER"

INTERNAL_TOPICS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Internal topics have one replica, and a new group starts at once instead of waiting 3 s for more members."""

MOST_REPLICAS, MOST_MIN_ISR = 3, 2
"""Kafka's defaults for internal topics. A record with that many survives the loss of any one broker."""


def replication_defaults(brokers: int) -> dict[str, str]:
    """Defaults for all topics in `quire start --nodes` and `quire.testing.Cluster`; any given setting overrides them.

    From three brokers on, every topic survives the loss of one of them without losing an acknowledged record, and can
    still be written. With fewer, there are as many replicas as there can be, and one is enough for an acknowledgement.
    """
    replicas = str(min(brokers, MOST_REPLICAS))
    min_isr = str(MOST_MIN_ISR if brokers >= MOST_REPLICAS else 1)
    return {
        "default.replication.factor": replicas,
        "min.insync.replicas": min_isr,
        **{name: replicas for name in INTERNAL_TOPICS if name.endswith(".replication.factor")},
        **{name: min_isr for name in INTERNAL_TOPICS if name.endswith(".min.isr")},
        "group.initial.rebalance.delay.ms": "0",
    }


REPLICATION_FACTORS = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)


def check_replication(get_int: Callable[[str], int], brokers: int) -> None:
    """ConfigError if no topic could be created: there will not be as many brokers as replicas."""
    for key in REPLICATION_FACTORS:
        factor = get_int(key)
        if factor > brokers:
            raise ConfigError(
                key,
                f"{key}={factor} cannot be reached with {brokers} node{'s' if brokers > 1 else ''}: choose {brokers} "
                "or less, or start more nodes.",
            )


EPHEMERAL_SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
}
"""For tests: groups do not wait for more members or changes, and internal topics are small."""


def standalone_defaults(
    given: Mapping[str, str] | None = None,
    *,
    listen: str = "127.0.0.1:9092",
    data_dir: str = "./quire-data",
    node_id: int = 1,
) -> dict[str, str]:
    """The settings that are missing in `given` for a standalone node.

    If `given` has process.roles, it is a complete configuration, and only the data directory is added. The controller
    listens on the loopback interface, one port above that for clients (on a free port if that is 0).
    """
    given = given or {}
    defaults = {} if "log.dirs" in given or "log.dir" in given else {"log.dirs": data_dir}
    if "process.roles" in given:
        return defaults
    defaults["process.roles"] = "broker,controller"
    if "node.id" not in given and "broker.id" not in given:
        defaults["node.id"] = str(node_id)

    controller = given.get("controller.listener.names", CONTROLLER_NAME).split(",")[0].strip()
    listeners = given.get("listeners", f"PLAINTEXT://{listen}")
    if not _has_listener(listeners, controller):
        port = _port_above(listeners)
        defaults["listeners"] = f"{listeners},{controller}://127.0.0.1:{port}"
        listeners = defaults["listeners"]
    if "controller.listener.names" not in given:
        defaults["controller.listener.names"] = controller
    if "controller.quorum.voters" not in given and "controller.quorum.bootstrap.servers" not in given:
        defaults["controller.quorum.bootstrap.servers"] = _address_of(listeners, controller)
    defaults.update((key, value) for key, value in INTERNAL_TOPICS.items() if key not in given)
    return defaults


def listening_on(listen: str, listeners: str, controller_names: str) -> str:
    """`listeners` with `listen` (HOST:PORT) instead of those for clients; those of the controller stay."""
    kept = [item for item in _items(listeners) if not is_for_clients(item, controller_names)]
    return ",".join([f"PLAINTEXT://{listen}", *kept])


def is_for_clients(listener: str, controller_names: str) -> bool:
    """Whether NAME://HOST:PORT is not one of the controller's."""
    name = listener.partition("://")[0].upper()
    return name not in [controller.upper() for controller in _items(controller_names)]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _has_listener(listeners: str, name: str) -> bool:
    return any(item.partition("://")[0].upper() == name.upper() for item in _items(listeners))


def _address_of(listeners: str, name: str) -> str:
    addresses = [item.partition("://")[2] for item in _items(listeners) if item.upper().startswith(f"{name.upper()}:")]
    host, _, port = addresses[0].rpartition(":")
    return f"{host or '127.0.0.1'}:{port}"


def _port_above(listeners: str) -> int:
    ports = [item.rpartition(":")[2] for item in _items(listeners)]
    highest = max((int(port) for port in ports if port.isdecimal()), default=0)
    return 0 if "0" in ports else highest + 1 if highest < 65535 else highest - len(ports)
