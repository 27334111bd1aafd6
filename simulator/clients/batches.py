"""Record batches for simulated producers. Each record's value names its producer session and its number in it."""

from dataclasses import dataclass, field
from typing import Any

from quire.protocol.records import Compression, Record, build_batch
from simulator.checks.superseded import is_compacted, key_for
from simulator.clients.client import Scene
from simulator.clients.wire import Wire
from simulator.ledger import NOTHING_KNOWN, Floor, PartitionBook
from simulator.random import SimRandom
from simulator.tasks import Promise

CODECS = (Compression.NONE, Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
ACKS_ALL = -1
MOST_RECORDS = 6
MOST_PADDING = 700


@dataclass(slots=True, eq=False)
class Batch:
    book: PartitionBook
    session: str
    first_number: int
    values: list[bytes]
    timestamps: list[int]
    content: bytes
    compression: Compression
    idempotent: bool
    acks: int = ACKS_ALL
    tries: int = 0
    era: int = -1
    floor: Floor = NOTHING_KNOWN
    flushed_since: int | None = None
    to_deposed: bool = False
    """`era`, `floor`, `flushed_since`, and whether it went to a deposed leader, are those of the last attempt."""
    answers: list[Promise[Any]] = field(default_factory=list)

    def sending(self, wire: Wire, copies: int) -> None:
        """Records in the ledger that it is sent now."""
        self.tries += copies
        self.era = wire.era
        self.floor = self.book.floor(wire.node)
        self.flushed_since = self.book.topic.flushed_since
        self.to_deposed = self.book.leadership.is_deposed(self.floor.epoch)
        for _ in range(copies):
            for number, (value, timestamp) in enumerate(
                zip(self.values, self.timestamps, strict=True), self.first_number
            ):
                self.book.send(value, self.session, number, idempotent=self.idempotent, timestamp=timestamp)

    @property
    def must_be_flushed(self) -> bool:
        """Whether flush.messages was 1 all the time from the request to the acknowledgement."""
        return self.flushed_since is not None and self.flushed_since == self.book.topic.flushed_since


class BatchMaker:
    """Makes the batches of one producer."""

    def __init__(self, scene: Scene, random: SimRandom) -> None:
        self._scene = scene
        self._random = random

    def make(
        self,
        book: PartitionBook,
        session: str,
        first_number: int,
        *,
        producer_id: int = -1,
        epoch: int = 0,
        sequence: int = -1,
        transactional: bool = False,
        count: int | None = None,
    ) -> Batch:
        """`count` records, by default a random number of them."""
        random = self._random
        now_ms = self._scene.clock.now_ms()
        count = 1 + random.below(MOST_RECORDS) if count is None else count
        values = [
            f"{session}:{number}:".encode() + b"x" * random.below(MOST_PADDING)
            for number in range(first_number, first_number + count)
        ]
        compacted = is_compacted(book.topic)
        records = [
            Record(
                0,
                now_ms - random.below(50),
                key_for(number) if compacted else session.encode() if random.chance(0.5) else None,
                value,
                [("from", b"simulator")] if random.chance(0.2) else [],
            )
            for number, value in enumerate(values, first_number)
        ]
        compression = random.choice(CODECS)
        content = build_batch(
            records,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        self._scene.ledger.counts.records_sent += len(values)
        return Batch(
            book,
            session,
            first_number,
            values,
            [record.timestamp for record in records],
            bytes(content),
            compression,
            idempotent=producer_id >= 0,
        )
