"""Quire's own settings: few, all beginning with `quire.`, none of them known to Kafka."""

from quire.config.allowed import at_least
from quire.config.key import INT, LONG, ConfigKey, table
from quire.config.units import KIB, MIB

QUIRE_KEYS = table(
    # Off by default: a thread that looks after the event loop wakes up many times a second.
    ConfigKey("quire.loop.watch.ms", INT, 0, at_least(0)),
    # What the compressed batches of one request may grow to: the bound that a decompression bomb runs into.
    ConfigKey("quire.max.decompressed.bytes", LONG, 128 * MIB, at_least(64 * KIB)),
    # What is set aside beside the metadata log, so that a node starts, and topics can be deleted, on a full disk.
    ConfigKey("quire.reserve.bytes", LONG, 4 * MIB, at_least(0)),
)
