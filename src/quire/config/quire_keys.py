"""Quire's own settings, which all begin with `quire.` and which Kafka does not have."""

from quire.config.allowed import at_least
from quire.config.key import INT, LONG, ConfigKey, table
from quire.config.units import KIB, MIB

QUIRE_KEYS = table(
    # Off by default: the thread that watches the event loop wakes up many times per second.
    ConfigKey("quire.loop.watch.ms", INT, 0, at_least(0)),
    # The limit on the decompressed batches of one request, against decompression bombs.
    ConfigKey("quire.max.decompressed.bytes", LONG, 128 * MIB, at_least(64 * KIB)),
    # The size of a file that reserves room for the metadata log, so that a node works on a full disk.
    ConfigKey("quire.reserve.bytes", LONG, 4 * MIB, at_least(0)),
)
