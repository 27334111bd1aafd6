"""Recognises servers that are not brokers by their first bytes, so that an error can say what answered.

The first request helps with that: its correlation id is `\\r\\n\\r\\n`, which ends a request of HTTP and of most other
protocols of text. Such a server answers at once, instead of waiting for the rest of a line.
"""

from collections.abc import Sequence

from quire.address import Address
from quire.client.errors import UnreachableError

FIRST_CORRELATION_ID = int.from_bytes(b"\r\n\r\n", "big")
FIRST_FRAME_BYTES_MAX = 1024 * 1024
"""A broker's first response lists its APIs in a few kilobytes. An alert of TLS would be a frame of 352 MB."""

_TLS = (b"\x15\x03", b"\x16\x03")  # an alert or a handshake, of any version
_SHOWN_BYTES = 40


class WrongServerError(UnreachableError):
    """A server listens at the address, but it is not a broker for clients."""


def what_answered(first: bytes) -> str:
    """Describes the server that sent these bytes instead of a response; the text follows the server's address."""
    if first.startswith((b"HTTP", b"<")):
        return "is an HTTP server, not a Kafka broker"
    if first.startswith(_TLS):
        return "expects TLS, which this client does not support"
    if first.startswith(b"SSH-"):
        return "is an SSH server, not a Kafka broker"
    line = first.splitlines()[0][:_SHOWN_BYTES] if first.strip() else b""
    if line.isascii() and line.decode("ascii").isprintable() and line:
        return f"is not a Kafka broker: it answered {line.decode('ascii')!r}"
    size = int.from_bytes(first[:4], "big", signed=True)
    return f"answered with a frame of {size} bytes; is this a Kafka port without TLS?"


def controllers_port(brokers: Sequence[Address]) -> str:
    """What a server is that has no Metadata; the text follows its address."""
    if not brokers:
        return "is the port of a controller, which serves no clients"
    return f"is the controller's port, and clients use {','.join(map(str, brokers))}"
