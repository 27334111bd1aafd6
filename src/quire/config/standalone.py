"""What `quire start` runs with when nobody says otherwise: one node that is broker and controller at once.

The result is an ordinary set of static settings, as a server.properties for a single Kafka node would have them.
"""

from __future__ import annotations

from collections.abc import Mapping

CONTROLLER_NAME = "CONTROLLER"

_ONE_REPLICA = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

EPHEMERAL_SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
}
"""For tests: groups that wait neither for stragglers nor for more changes, and internal topics that cost little."""


def standalone_defaults(
    given: Mapping[str, str] | None = None,
    *,
    listen: str = "127.0.0.1:9092",
    data_dir: str = "./quire-data",
    node_id: int = 1,
) -> dict[str, str]:
    """Settings that make `given` a working node on its own; only what `given` leaves open.

    A `given` with process.roles is somebody's complete configuration, and only its data directory is filled in. The
    controller listens on the loopback interface, one port above the clients' (a free one if theirs is).
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
    defaults.update((key, value) for key, value in _ONE_REPLICA.items() if key not in given)
    return defaults


def listening_on(listen: str, listeners: str, controller_names: str) -> str:
    """`listeners` with the clients' ones replaced by `listen` (HOST:PORT), those of the controller kept."""
    controllers = [name.strip() for name in controller_names.split(",")]
    kept = [item for item in _items(listeners) if item.partition("://")[0] in controllers]
    return ",".join([f"PLAINTEXT://{listen}", *kept])


def _items(listeners: str) -> list[str]:
    return [item.strip() for item in listeners.split(",") if item.strip()]


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
