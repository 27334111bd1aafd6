"""Listeners: named addresses, such as PLAINTEXT://127.0.0.1:9092, and the security protocol of each name."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quire.config.errors import ConfigError

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_LISTENER = r"(?P<name>[^:/]+)://(?:\[(?P<v6>[0-9a-fA-F:.%]+)\]|(?P<host>[^:\[\]/]*)):(?P<port>\d{1,5})"


class Listener(NamedTuple):
    name: str
    """In upper case, as Kafka compares names."""
    host: str
    """Empty: every interface."""
    port: int
    """0: a free port, which the system chooses."""
    security_protocol: str

    @property
    def shown_host(self) -> str:
        """An IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def address(self) -> str:
        return f"{self.shown_host}:{self.port}"

    @property
    def is_everywhere(self) -> bool:
        """Whether it listens on every interface, so that clients cannot connect to its host as written."""
        return self.host in ("", "0.0.0.0", "::")

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


def parse_listeners(key: str, items: Iterable[str], protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    """The listeners of `key`, with unique names that have a security protocol."""
    listeners: list[Listener] = []
    for item in items:
        listener = _parse(key, item, protocols)
        if any(other.name == listener.name for other in listeners):
            raise ConfigError(key, f"{key} has two listeners called {listener.name}: give each its own name.")
        listeners.append(listener)
    return tuple(listeners)


def check_ports(key: str, listeners: Iterable[Listener]) -> None:
    """Two listeners may share a port only if one is IPv4 and the other IPv6, or if both have port 0."""
    taken: dict[tuple[int, bool], Listener] = {}
    for listener in listeners:
        port = (listener.port, ":" in listener.host)
        if listener.port and port in taken:
            raise ConfigError(key, f"{key} has {taken[port]} and {listener} on one port: give each its own.")
        taken[port] = listener


def parse_protocol_map(key: str, text: str) -> dict[str, str]:
    """`INTERNAL:PLAINTEXT,EXTERNAL:SSL` as listener name -> security protocol."""
    protocols: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip().upper() for part in item.partition(":"))
        if not colon or not name or protocol not in SECURITY_PROTOCOLS:
            expected = ", ".join(SECURITY_PROTOCOLS)
            raise ConfigError(key, f"{key} has {item}: write NAME:PROTOCOL, with a protocol of {expected}.")
        if name in protocols:
            raise ConfigError(key, f"{key} maps {name} twice: keep one of them.")
        protocols[name] = protocol
    return protocols


def _parse(key: str, item: str, protocols: Mapping[str, str]) -> Listener:
    match = re.fullmatch(_LISTENER, item)
    if match is None or int(match["port"]) > 65535:
        raise ConfigError(key, f"{key}={item} is not allowed: write each listener as NAME://HOST:PORT.")
    name = match["name"].upper()
    if name not in protocols:
        raise ConfigError(
            key,
            f"{key} has a listener {name} without a security protocol: add {name}:PLAINTEXT to "
            "listener.security.protocol.map.",
        )
    return Listener(name, match["v6"] or match["host"] or "", int(match["port"]), protocols[name])
