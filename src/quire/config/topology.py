"""A node's part in the cluster: its roles, its listeners and its quorum, checked together as in Kafka.

Each key may be valid while their combination is not: a controller without a controller listener, a voter that is not in
the set of voters, an advertised address that no client can reach. The error of each rule says which key to change.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from quire.config.allowed import Value
from quire.config.errors import ConfigError
from quire.config.listeners import Listener, check_ports, parse_listeners, parse_protocol_map
from quire.config.unsupported import check_supported_listeners

_VOTER = r"(?P<id>\d+)@(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:]+)):(?P<port>\d{1,5})"
_ANYWHERE = ("0.0.0.0", "::")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Voter(NamedTuple):
    id: int
    host: str
    port: int


class Topology(NamedTuple):
    node_id: int
    is_broker: bool
    is_controller: bool
    broker_listeners: tuple[Listener, ...]
    controller_listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    """The addresses for clients and other brokers. Port 0 means the port that the listener got."""
    advertised_controller_listeners: tuple[Listener, ...]
    """Where other nodes reach this controller."""
    inter_broker_listener: str
    voters: tuple[Voter, ...]
    """The static quorum; empty if the metadata log has the voters (KIP-853)."""
    bootstrap_servers: tuple[str, ...]
    hostname: str

    @property
    def is_alone(self) -> bool:
        """Whether this is the only controller, as far as the settings say."""
        if not self.is_controller:
            return False
        if self.voters:
            return len(self.voters) == 1
        return len(self.bootstrap_servers) == 1 and any(
            self._is_at(self.bootstrap_servers[0], listener)
            for listener in (*self.controller_listeners, *self.advertised_controller_listeners)
        )

    def _is_at(self, server: str, listener: Listener) -> bool:
        host, _, port = server.rpartition(":")
        host = host.removeprefix("[").removesuffix("]").lower()
        here = (*_LOOPBACK, self.hostname.lower()) if listener.is_everywhere else (listener.host.lower(),)
        both_local = host in _LOOPBACK and listener.host.lower() in _LOOPBACK
        return port == str(listener.port) and (host in here or both_local)


def topology_of(values: Mapping[str, Value], explicit: Collection[str], hostname: str) -> Topology:
    """`explicit` are the keys that are set; `hostname` is advertised for listeners on every interface."""
    roles = _required(values, "process.roles", "broker,controller for a node on its own")
    node_id = values["node.id"]
    if node_id is None:
        raise ConfigError("node.id", "node.id is missing: give every node a unique number.")
    assert isinstance(node_id, int)
    controller_names = tuple(
        name.upper() for name in _required(values, "controller.listener.names", "the name of the controller's listener")
    )
    protocols = _protocols(values, explicit, controller_names)
    listeners = parse_listeners("listeners", _list(values, "listeners"), protocols)
    check_supported_listeners(listeners)
    check_ports("listeners", listeners)

    is_broker, is_controller = "broker" in roles, "controller" in roles
    broker_listeners = tuple(item for item in listeners if item.name not in controller_names)
    controller_listeners = tuple(item for item in listeners if item.name in controller_names)
    _check_roles(is_broker, is_controller, broker_listeners, controller_listeners)
    voters, bootstrap_servers = _quorum(values, node_id, is_controller)
    advertised: tuple[Listener, ...] = ()
    inter_broker = ""
    if is_broker:
        advertised = _advertised(values, broker_listeners, controller_names, protocols, hostname)
        inter_broker = _inter_broker(values, explicit, advertised)
    return Topology(
        node_id,
        is_broker,
        is_controller,
        broker_listeners,
        controller_listeners,
        advertised,
        _advertised_controllers(values, controller_listeners, protocols, hostname),
        inter_broker,
        voters,
        bootstrap_servers,
        hostname,
    )


def _protocols(
    values: Mapping[str, Value], explicit: Collection[str], controller_names: tuple[str, ...]
) -> dict[str, str]:
    key = "listener.security.protocol.map"
    text = values[key]
    assert isinstance(text, str)
    protocols = parse_protocol_map(key, text)
    if key not in explicit:
        for name in controller_names:
            protocols.setdefault(name, "PLAINTEXT")
    return protocols


def _check_roles(
    is_broker: bool,
    is_controller: bool,
    broker_listeners: tuple[Listener, ...],
    controller_listeners: tuple[Listener, ...],
) -> None:
    if is_controller and not controller_listeners:
        raise ConfigError(
            "listeners",
            "listeners has none of controller.listener.names: a controller needs one, such as "
            "CONTROLLER://127.0.0.1:9093.",
        )
    if is_broker and not broker_listeners:
        raise ConfigError(
            "listeners",
            "listeners has only controller listeners: a broker needs one for its clients, such as "
            "PLAINTEXT://127.0.0.1:9092.",
        )
    if is_broker and not is_controller and controller_listeners:
        raise ConfigError(
            "listeners",
            f"listeners has {controller_listeners[0]}: a node that is only a broker has no controller "
            "listener, remove it or add controller to process.roles.",
        )
    if is_controller and not is_broker and broker_listeners:
        raise ConfigError(
            "listeners",
            f"listeners has {broker_listeners[0]}: a node that is only a controller has no other "
            "listeners than controller.listener.names, remove it or add broker to process.roles.",
        )


def _quorum(
    values: Mapping[str, Value], node_id: int, is_controller: bool
) -> tuple[tuple[Voter, ...], tuple[str, ...]]:
    key = "controller.quorum.voters"
    voters = tuple(_voter(key, item) for item in _list(values, key))
    bootstrap_servers = _list(values, "controller.quorum.bootstrap.servers")
    if not voters and not bootstrap_servers:
        raise ConfigError(
            "controller.quorum.bootstrap.servers",
            "controller.quorum.bootstrap.servers is missing: name the controllers as HOST:PORT.",
        )
    ids = [voter.id for voter in voters]
    if voters and is_controller is not (node_id in ids):
        wrong = "lacks this controller's" if is_controller else "has this broker's"
        raise ConfigError(key, f"{key} {wrong} node.id {node_id}: it must list all controllers and no other node.")
    return voters, bootstrap_servers


def _voter(key: str, item: str) -> Voter:
    match = re.fullmatch(_VOTER, item)
    if match is None:
        raise ConfigError(key, f"{key}={item} is not allowed: write each voter as ID@HOST:PORT.")
    return Voter(int(match["id"]), match["v6"] or match["host"], int(match["port"]))


def _advertised(
    values: Mapping[str, Value],
    listeners: tuple[Listener, ...],
    controller_names: tuple[str, ...],
    protocols: Mapping[str, str],
    hostname: str,
) -> tuple[Listener, ...]:
    key = "advertised.listeners"
    if values[key] is None:
        advertised = listeners
    else:
        everything = parse_listeners(key, _list(values, key), protocols)
        advertised = tuple(item for item in everything if item.name not in controller_names)
    if not advertised:
        raise ConfigError(key, f"{key} has no listener for clients: add one of those in listeners.")
    names = [item.name for item in listeners]
    for item in advertised:
        if item.name not in names:
            raise ConfigError(key, f"{key} has {item}, but listeners has only {', '.join(names)}: use one of these.")
        if item.host in _ANYWHERE:
            reachable = ",".join(str(each._replace(host=hostname)) for each in advertised)
            raise ConfigError(
                key,
                f"{key} would tell clients to connect to {item.shown_host}: set it to an address they can reach, such "
                f"as {key}={reachable}.",
            )
    return tuple(item if item.host else item._replace(host=hostname) for item in advertised)


def _advertised_controllers(
    values: Mapping[str, Value], listeners: tuple[Listener, ...], protocols: Mapping[str, str], hostname: str
) -> tuple[Listener, ...]:
    """As in `advertised.listeners`, where a controller listener need not be: then it is the listener's own address."""
    key = "advertised.listeners"
    everything = () if values[key] is None else parse_listeners(key, _list(values, key), protocols)
    named = {item.name: item for item in everything}
    advertised = (named.get(item.name, item) for item in listeners)
    return tuple(item._replace(host=hostname) if item.is_everywhere else item for item in advertised)


def _inter_broker(values: Mapping[str, Value], explicit: Collection[str], advertised: tuple[Listener, ...]) -> str:
    key, other = "inter.broker.listener.name", "security.inter.broker.protocol"
    if key in explicit and other in explicit:
        raise ConfigError(key, f"{key} and {other} are both set: keep one of them.")
    name = values[key] or values[other]
    assert isinstance(name, str)
    names = [item.name for item in advertised]
    if name.upper() not in names:
        raise ConfigError(key, f"{key}={name} is not an advertised listener: it must be one of {', '.join(names)}.")
    return name.upper()


def _required(values: Mapping[str, Value], key: str, example: str) -> tuple[str, ...]:
    if values[key] is None:
        raise ConfigError(key, f"{key} is missing: set it to {example}.")
    return _list(values, key)


def _list(values: Mapping[str, Value], key: str) -> tuple[str, ...]:
    value = values[key]
    assert isinstance(value, tuple)
    return value
