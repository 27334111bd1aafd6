"""Kafka's 128-bit ids of topics, directories and clusters: 16 bytes in memory and on the wire, base64url as text."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

ZERO: Final = bytes(16)
"""No id: the topic is identified by its name."""

METADATA_TOPIC_ID: Final = bytes(15) + b"\x01"
"""The topic id of `__cluster_metadata`, the same in every cluster."""


def to_text(uuid: bytes) -> str:
    """As Kafka prints it: 22 characters of base64url without padding."""
    assert len(uuid) == 16, f"a uuid has 16 bytes, not {len(uuid)}"
    return urlsafe_b64encode(uuid)[:22].decode("ascii")


def from_text(text: str) -> bytes:
    """The inverse of `to_text`; ValueError for other texts. As in Kafka, the last character has unused bits."""
    try:
        uuid = urlsafe_b64decode(text + "==") if len(text) == 22 else b""
    except ValueError:
        uuid = b""
    if len(uuid) != 16 or to_text(uuid)[:21] != text[:21]:
        raise ValueError(f"{text!r} is not a uuid: expected 22 characters of base64url, such as AAAAAAAAAAAAAAAAAAAAAQ")
    return uuid
