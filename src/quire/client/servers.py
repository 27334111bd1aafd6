"""Addresses of a cluster: `host:port,host:port`, as in every Kafka client."""

from quire.address import Address
from quire.client.errors import ClientError

DEFAULT_PORT = 9092


class AddressError(ClientError):
    pass


def parse_address(text: str, *, default_port: int | None = None) -> Address:
    """`host:port`, `[v6]:port`, or `host` alone if there is a default port."""
    scheme, slashes, _ = text.partition("://")
    if slashes:
        raise AddressError(f"{text!r} is not an address; write it as host:port, without {scheme.strip()}://")
    host, separator, port = text.strip().rpartition(":")
    if not separator or port.endswith("]"):
        host, port = text.strip(), "" if default_port is None else str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise AddressError(f"{text!r} is not an address; write it as host:port, for example 127.0.0.1:9092")
    return Address(host, int(port))


def parse_servers(text: str) -> list[Address]:
    """The addresses of a bootstrap list, in the given order; the default port is 9092."""
    addresses = [parse_address(part, default_port=DEFAULT_PORT) for part in text.split(",") if part.strip()]
    if not addresses:
        raise AddressError("no server was given; write at least one as host:port, for example 127.0.0.1:9092")
    return addresses
