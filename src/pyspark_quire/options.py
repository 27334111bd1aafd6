"""The options of `format("quire")`: one table of names, uses, defaults and parsers.

The names are those of Spark's own Kafka source and sink, so that a job changes over by changing one word; Spark ignores
their case. An unknown option is refused, with the nearest valid name: an option that is silently ignored because of a
typing error is hard to find. Settings of Kafka's clients that mean nothing here are in `WITHOUT_EFFECT`: a job may
have them.
"""

import difflib
from collections.abc import Callable, Mapping
from enum import Flag
from typing import Any, Generic, TypeVar, overload

from pyspark_quire import option_values as values
from pyspark_quire.errors import OptionError

T = TypeVar("T")


class Use(Flag):
    """What an option is for."""

    BATCH_READ = 1
    STREAM_READ = 2
    BATCH_WRITE = 4
    STREAM_WRITE = 8
    READ = BATCH_READ | STREAM_READ
    WRITE = BATCH_WRITE | STREAM_WRITE
    BOTH = READ | WRITE


_DESCRIPTIONS = {
    Use.BATCH_READ: "reading a batch",
    Use.STREAM_READ: "reading a stream",
    Use.READ: "reading",
    Use.BATCH_WRITE: "writing a batch",
    Use.STREAM_WRITE: "writing a stream",
    Use.WRITE: "writing",
    Use.BOTH: "reading and writing",
}


class Option(Generic[T]):
    """One row of the table. `default` is the value if the option is not given."""

    __slots__ = ("default", "name", "parse", "use")

    @overload
    def __init__(self: "Option[T]", name: str, use: Use, parse: Callable[[str], T], default: T) -> None: ...
    @overload
    def __init__(self: "Option[T | None]", name: str, use: Use, parse: Callable[[str], T]) -> None: ...
    def __init__(self, name: str, use: Use, parse: Callable[[str], Any], default: Any = None) -> None:
        self.name = name
        self.use = use
        self.parse = parse
        self.default: T = default


SERVERS = Option("kafka.bootstrap.servers", Use.BOTH, values.text)
CLIENT_ID = Option("kafka.client.id", Use.BOTH, values.text, "quire-spark")
REQUEST_TIMEOUT_MS = Option("kafka.request.timeout.ms", Use.BOTH, values.positive, 30_000)
SECURITY_PROTOCOL = Option("kafka.security.protocol", Use.BOTH, values.one_of("PLAINTEXT"), "PLAINTEXT")
INCLUDE_HEADERS = Option("includeHeaders", Use.BOTH, values.boolean, False)

SUBSCRIBE = Option("subscribe", Use.READ, values.names)
SUBSCRIBE_PATTERN = Option("subscribePattern", Use.READ, values.pattern)
ASSIGN = Option("assign", Use.READ, values.assignment)
STARTING_OFFSETS = Option("startingOffsets", Use.READ, values.offsets)
STARTING_TIMESTAMP = Option("startingTimestamp", Use.READ, values.whole)
STARTING_BY_TIMESTAMP = Option("startingOffsetsByTimestamp", Use.READ, values.timestamps)
STARTING_STRATEGY = Option("startingOffsetsByTimestampStrategy", Use.READ, values.one_of("error", "latest"), "error")
ENDING_OFFSETS = Option("endingOffsets", Use.BATCH_READ, values.offsets)
ENDING_TIMESTAMP = Option("endingTimestamp", Use.BATCH_READ, values.whole)
ENDING_BY_TIMESTAMP = Option("endingOffsetsByTimestamp", Use.BATCH_READ, values.timestamps)
MIN_PARTITIONS = Option("minPartitions", Use.READ, values.positive)
MAX_RECORDS_PER_PARTITION = Option("maxRecordsPerPartition", Use.READ, values.positive)
FAIL_ON_DATA_LOSS = Option("failOnDataLoss", Use.READ, values.boolean, True)
ISOLATION_LEVEL = Option(
    "kafka.isolation.level", Use.READ, values.one_of("read_uncommitted", "read_committed"), "read_uncommitted"
)
FETCH_MAX_BYTES = Option("kafka.max.partition.fetch.bytes", Use.READ, values.positive, 4 * 1024 * 1024)
FETCH_MAX_WAIT_MS = Option("kafka.fetch.max.wait.ms", Use.READ, values.whole, 500)
POLL_TIMEOUT_MS = Option("kafkaConsumer.pollTimeoutMs", Use.READ, values.positive, 120_000)
GROUP_ID = Option("kafka.group.id", Use.READ, values.text)
GROUP_ID_PREFIX = Option("groupIdPrefix", Use.READ, values.text, "spark-quire")
MAX_OFFSETS_PER_TRIGGER = Option("maxOffsetsPerTrigger", Use.STREAM_READ, values.positive)
MIN_OFFSETS_PER_TRIGGER = Option("minOffsetsPerTrigger", Use.STREAM_READ, values.positive)
MAX_TRIGGER_DELAY_MS = Option("maxTriggerDelay", Use.STREAM_READ, values.duration_ms, 15 * 60_000)

TOPIC = Option("topic", Use.WRITE, values.text)
CHECKPOINT = Option("checkpointLocation", Use.STREAM_WRITE, values.text)
QUERY_NAME = Option("queryName", Use.STREAM_WRITE, values.text)
SINK = Option("sink", Use.WRITE, values.text)
EXACTLY_ONCE = Option("exactlyOnce", Use.WRITE, values.boolean)
MARKER_TOPIC = Option("markerTopic", Use.WRITE, values.text, "spark-sink-marks")
ALLOW_MISSING_MARKER = Option("allowMissingMarker", Use.WRITE, values.boolean, False)
ACKS = Option("kafka.acks", Use.WRITE, values.one_of("all", "-1"), "all")
COMPRESSION = Option(
    "kafka.compression.type", Use.WRITE, values.one_of("none", "gzip", "snappy", "lz4", "zstd"), "none"
)
GZIP_LEVEL = Option("kafka.compression.gzip.level", Use.WRITE, values.level(1, 9))
LZ4_LEVEL = Option("kafka.compression.lz4.level", Use.WRITE, values.level(1, 17))
ZSTD_LEVEL = Option("kafka.compression.zstd.level", Use.WRITE, values.level(-131072, 22))
BATCH_BYTES = Option("kafka.batch.size", Use.WRITE, values.positive, 512 * 1024)
REQUEST_BYTES = Option("kafka.max.request.size", Use.WRITE, values.positive, 4 * 1024 * 1024)
BUFFER_BYTES = Option("kafka.buffer.memory", Use.WRITE, values.positive, 32 * 1024 * 1024)
DELIVERY_TIMEOUT_MS = Option("kafka.delivery.timeout.ms", Use.WRITE, values.positive, 120_000)
TRANSACTION_TIMEOUT_MS = Option("kafka.transaction.timeout.ms", Use.WRITE, values.positive, 60_000)

READING: tuple[Option[Any], ...] = (
    SERVERS,
    CLIENT_ID,
    REQUEST_TIMEOUT_MS,
    SECURITY_PROTOCOL,
    INCLUDE_HEADERS,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    ASSIGN,
    STARTING_OFFSETS,
    STARTING_TIMESTAMP,
    STARTING_BY_TIMESTAMP,
    STARTING_STRATEGY,
    ENDING_OFFSETS,
    ENDING_TIMESTAMP,
    ENDING_BY_TIMESTAMP,
    MIN_PARTITIONS,
    MAX_RECORDS_PER_PARTITION,
    FAIL_ON_DATA_LOSS,
    ISOLATION_LEVEL,
    FETCH_MAX_BYTES,
    FETCH_MAX_WAIT_MS,
    POLL_TIMEOUT_MS,
    GROUP_ID,
    GROUP_ID_PREFIX,
    MAX_OFFSETS_PER_TRIGGER,
    MIN_OFFSETS_PER_TRIGGER,
    MAX_TRIGGER_DELAY_MS,
)

WRITING: tuple[Option[Any], ...] = (
    TOPIC,
    CHECKPOINT,
    QUERY_NAME,
    SINK,
    EXACTLY_ONCE,
    MARKER_TOPIC,
    ALLOW_MISSING_MARKER,
    ACKS,
    COMPRESSION,
    GZIP_LEVEL,
    LZ4_LEVEL,
    ZSTD_LEVEL,
    BATCH_BYTES,
    REQUEST_BYTES,
    BUFFER_BYTES,
    DELIVERY_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
)

TABLE = READING + WRITING

WITHOUT_EFFECT = frozenset(
    (
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        "kafka.check.crcs",
        "kafka.connections.max.idle.ms",
        "kafka.default.api.timeout.ms",
        "kafka.enable.idempotence",
        "kafka.fetch.max.bytes",
        "kafka.fetch.min.bytes",
        "kafka.heartbeat.interval.ms",
        "kafka.linger.ms",
        "kafka.max.block.ms",
        "kafka.max.in.flight.requests.per.connection",
        "kafka.max.poll.interval.ms",
        "kafka.max.poll.records",
        "kafka.metadata.max.age.ms",
        "kafka.receive.buffer.bytes",
        "kafka.reconnect.backoff.max.ms",
        "kafka.reconnect.backoff.ms",
        "kafka.retries",
        "kafka.retry.backoff.ms",
        "kafka.send.buffer.bytes",
        "kafka.session.timeout.ms",
    )
)
"""Settings of the Java client that do not affect which records are read or written; in lower case."""


class Options:
    """The parsed options of one reader or writer. It can be pickled, because tasks need it."""

    __slots__ = ("_values",)

    def __init__(self, given: Mapping[str, str], use: Use) -> None:
        """Raises OptionError for an unknown option, one for another use, or an invalid value."""
        by_name = {option.name.lower(): option for option in TABLE}
        self._values: dict[str, Any] = {}
        for name, value in given.items():
            option = by_name.get(name.lower())
            if option is None:
                if name.lower() not in WITHOUT_EFFECT:
                    raise OptionError(_unknown(name, use))
                continue
            if not option.use & use:
                purpose, wanted = _DESCRIPTIONS[option.use], _DESCRIPTIONS[use]
                raise OptionError(f"option {option.name} is for {purpose}, not for {wanted}; leave it out")
            try:
                self._values[option.name] = option.parse(value)
            except ValueError as error:
                raise OptionError(f"option {option.name} {error}, not {value!r}") from None

    def __getitem__(self, option: Option[T]) -> T:
        value: T = self._values.get(option.name, option.default)
        return value

    def __contains__(self, option: Option[Any]) -> bool:
        return option.name in self._values

    def required(self, option: Option[T | None]) -> T:
        value = self[option]
        if value is None:
            raise OptionError(f"option {option.name} is missing; give it with .option({option.name!r}, ...)")
        return value


def _unknown(name: str, use: Use) -> str:
    known = {option.name.lower(): option.name for option in TABLE if option.use & use}
    nearest = difflib.get_close_matches(name.lower(), known, 1, 0.0)
    return f"there is no option {name}; did you mean {known[nearest[0]]}?"
