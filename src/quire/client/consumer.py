"""The consumer: reads assigned partitions from given offsets, from all of their leaders at once.

`assign` finds the starting offsets. After that `poll` returns the records that have arrived and requests more, so that
brokers work while the caller reads (`fetcher`). An offset that no longer exists is an error, unless `reset` says where
to continue.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quire.client.cluster import Cluster
from quire.client.errors import passes
from quire.client.fetched import Fetched
from quire.client.fetcher import FetchConfig, Fetcher, Position
from quire.client.offsets import EARLIEST, LATEST, TopicPartition, list_offsets
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.steps import Steps, perform


class Start(NamedTuple):
    """Where to begin: at an offset, at the first record at or after a time, or (both None) at the current position."""

    offset: int | None = None
    timestamp_ms: int | None = None


BEGINNING = Start(timestamp_ms=EARLIEST)
END = Start(timestamp_ms=LATEST)
CURRENT = Start()


@dataclass(slots=True, frozen=True)
class ConsumerConfig(FetchConfig):
    """`reset` is where to continue if an offset does not exist; with None that is an error."""

    reset: Start | None = None


class Consumer:
    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig | None = None,
        moved: Callable[[TopicPartition, int], None] = lambda topic_partition, offset: None,
    ) -> None:
        """`moved` is called when an offset did not exist, with the offset at which reading continues."""
        self.config = config or ConsumerConfig()
        self._cluster = cluster
        self._moved = moved
        self._fetcher = Fetcher(cluster, self.config, self)
        self._arrival: Pending[None] | None = None
        self._failure: Exception | None = None

    def assign(
        self, starts: Mapping[TopicPartition, Start], ends: Mapping[TopicPartition, int] | None = None
    ) -> Steps[None]:
        """Reads exactly these partitions from now on, up to an end if there is one.

        `poll` may return records beyond the end, because batches come whole, but nothing after it is requested.
        """
        if starts:
            yield from self._cluster.refresh(sorted({topic_partition.topic for topic_partition in starts}))
        for topic_partition in starts:
            topic = self._cluster.metadata.topics.get(topic_partition.topic)
            if topic is None or topic_partition.partition not in topic.partitions:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic_partition} does not exist")
        resolved = yield from self._resolve(starts)
        offsets = self.positions | resolved  # the current positions: reading continued while `_resolve` waited
        self._fetcher.assign({topic_partition: offsets[topic_partition] for topic_partition in starts}, ends)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to be read, by partition; what `poll` has returned counts as read."""
        return {topic_partition: position.read_offset for topic_partition, position in self._fetcher.positions.items()}

    def poll(self) -> list[Fetched]:
        """Returns what has arrived, at most one piece per partition, and requests more. Raises the error of `fail`."""
        if self._failure is not None:
            raise self._failure
        return self._fetcher.take()

    def arrival(self) -> Pending[None]:
        """Completed when `poll` has records or an error."""
        arrival: Pending[None] = Pending()
        if self._failure is not None or any(position.pieces for position in self._fetcher.positions.values()):
            arrival.complete(None)
        else:
            self._arrival = arrival
        return arrival

    def fail(self, error: Exception) -> None:
        """Makes `poll` raise this error; the first error counts."""
        if self._failure is None:
            self._failure = error
        self.wake()

    def wake(self) -> None:
        """Completes the pending `arrival`, so that its waiter calls `poll` again."""
        if self._arrival is not None:
            arrival, self._arrival = self._arrival, None
            arrival.complete_once(None)

    def close(self) -> None:
        self._fetcher.close()

    # --- The fetcher's side

    def arrived(self) -> None:
        self.wake()

    def failed(self, error: Exception) -> None:
        self.fail(error)

    def out_of_range(self, position: Position, log_start_offset: int) -> None:
        if self.config.reset is None:
            self.fail(
                ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"offset {position.offset} of {position.topic_partition} does not exist; "
                    f"the partition begins at {max(log_start_offset, 0)}",
                )
            )
            return

        def found(outcome: dict[TopicPartition, int] | Exception) -> None:
            if isinstance(outcome, Exception):
                if passes(outcome):
                    self._fetcher.retry(position)  # which calls this method again
                else:
                    self.fail(outcome)
                return
            offset = outcome[position.topic_partition]
            self._fetcher.resume(position, offset)
            self._moved(position.topic_partition, offset)
            self.wake()

        perform(self._resolve({position.topic_partition: self.config.reset})).when_done(found)

    def _resolve(self, starts: Mapping[TopicPartition, Start]) -> Steps[dict[TopicPartition, int]]:
        offsets = {
            topic_partition: start.offset for topic_partition, start in starts.items() if start.offset is not None
        }
        times = {
            topic_partition: start.timestamp_ms
            for topic_partition, start in starts.items()
            if start.timestamp_ms is not None
        }
        isolation_level = int(self.config.read_committed)
        found = yield from list_offsets(self._cluster, times, isolation_level=isolation_level)
        after_all = {topic_partition: LATEST for topic_partition, at in found.items() if at.offset < 0}
        found |= yield from list_offsets(self._cluster, after_all, isolation_level=isolation_level)
        return offsets | {topic_partition: at.offset for topic_partition, at in found.items()}
