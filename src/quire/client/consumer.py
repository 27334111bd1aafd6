"""The consumer: reads assigned partitions from where it is told, all of their leaders at once.

`assign` finds the starting offsets; from then on `poll` hands over what has come, and asks for more in the same breath,
so brokers work while the caller reads (`fetcher`). An offset that is no longer there is an error unless the caller
chose where to go then.
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
    """Where to begin: at an offset, or at the first record at or after a time; neither: where it has been read to."""

    offset: int | None = None
    timestamp_ms: int | None = None


BEGINNING = Start(timestamp_ms=EARLIEST)
END = Start(timestamp_ms=LATEST)
GO_ON = Start()


@dataclass(slots=True, frozen=True)
class ConsumerConfig(FetchConfig):
    """`reset` is where to go on when an offset is gone; None makes it an error."""

    reset: Start | None = None


class Consumer:
    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig | None = None,
        moved: Callable[[TopicPartition, int], None] = lambda place, offset: None,
    ) -> None:
        """`moved` is told when an offset was not there any more, and where reading goes on instead."""
        self.config = config or ConsumerConfig()
        self._cluster = cluster
        self._moved = moved
        self._fetcher = Fetcher(cluster, self.config, self)
        self._arrival: Pending[None] | None = None
        self._failure: Exception | None = None

    def assign(
        self, starts: Mapping[TopicPartition, Start], ends: Mapping[TopicPartition, int] | None = None
    ) -> Steps[None]:
        """Reads these partitions from now on, and no others; up to an end, where there is one.

        What is handed over may go beyond the end, since batches come whole, but nothing behind it is asked for.
        """
        if starts:
            yield from self._cluster.refresh(sorted({place.topic for place in starts}))
        for place in starts:
            topic = self._cluster.metadata.topics.get(place.topic)
            if topic is None or place.partition not in topic.partitions:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{place} does not exist")
        resolved = yield from self._resolve(starts)
        offsets = self.positions | resolved  # as they are now: reading went on while the others were asked about
        self._fetcher.assign({place: offsets[place] for place in starts}, ends)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to be read, by partition; what `poll` handed over counts as read."""
        return {place: position.read_offset for place, position in self._fetcher.positions.items()}

    def poll(self) -> list[Fetched]:
        """What has come, at most one piece per partition, and asks for more. Raises what reading cannot go on after."""
        if self._failure is not None:
            raise self._failure
        return self._fetcher.take()

    def arrival(self) -> Pending[None]:
        """Comes back when `poll` has something to say."""
        arrival: Pending[None] = Pending()
        if self._failure is not None or any(position.pieces for position in self._fetcher.positions.values()):
            arrival.complete(None)
        else:
            self._arrival = arrival
        return arrival

    def fail(self, error: Exception) -> None:
        """Reading cannot go on, which `poll` says; the first reason counts."""
        if self._failure is None:
            self._failure = error
        self.wake()

    def wake(self) -> None:
        """Lets whoever waits for an arrival look again."""
        if self._arrival is not None:
            arrival, self._arrival = self._arrival, None
            arrival.complete_once(None)

    def close(self) -> None:
        self._fetcher.close()

    # -- what the fetcher reports -----------------------------------------------------------------------------------

    def arrived(self) -> None:
        self.wake()

    def failed(self, error: Exception) -> None:
        self.fail(error)

    def out_of_range(self, position: Position, log_start_offset: int) -> None:
        if self.config.reset is None:
            self.fail(
                ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"offset {position.offset} of {position.place} is not there; "
                    f"the partition begins at {max(log_start_offset, 0)}",
                )
            )
            return

        def found(outcome: dict[TopicPartition, int] | Exception) -> None:
            if isinstance(outcome, Exception):
                if passes(outcome):
                    self._fetcher.retry(position)  # which leads here again
                else:
                    self.fail(outcome)
                return
            offset = outcome[position.place]
            self._fetcher.resume(position, offset)
            self._moved(position.place, offset)
            self.wake()

        perform(self._resolve({position.place: self.config.reset})).when_done(found)

    def _resolve(self, starts: Mapping[TopicPartition, Start]) -> Steps[dict[TopicPartition, int]]:
        offsets = {place: start.offset for place, start in starts.items() if start.offset is not None}
        times = {place: start.timestamp_ms for place, start in starts.items() if start.timestamp_ms is not None}
        isolation_level = int(self.config.read_committed)
        found = yield from list_offsets(self._cluster, times, isolation_level=isolation_level)
        after_all = {place: LATEST for place, at in found.items() if at.offset < 0}
        found |= yield from list_offsets(self._cluster, after_all, isolation_level=isolation_level)
        return offsets | {place: at.offset for place, at in found.items()}
