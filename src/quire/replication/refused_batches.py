"""The batches of idempotent producers that a leader has refused for a temporary reason: no room, too few replicas.

A producer has up to five batches under way. If the first one is refused, and the reason has gone when the next one
arrives, that one must be refused too, with the same error: the client then sends all of them again, in order. Otherwise
a producer that is new to the partition would get its second batch written before its first one. And any other would get
OUT_OF_ORDER_SEQUENCE_NUMBER, which says that records were lost: librdkafka then takes a new epoch, and with it repeats
records whose fate it does not know in other partitions, so these have them twice.

A client that has given the first batch up sends others without it. So only as many are refused as can have been under
way with it.
"""

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.records import BatchHeader

MOST_BEHIND = 4
"""Clients have at most five batches under way for each partition, or the broker could not recognise repeated ones."""
MOST_PRODUCERS = 1000
_SEQUENCES = 1 << 31


class _Refused:
    __slots__ = ("code", "epoch", "left", "sequence")

    def __init__(self, epoch: int, sequence: int, code: ErrorCode) -> None:
        self.epoch = epoch
        self.sequence = sequence
        self.code = code
        self.left = MOST_BEHIND
        """How many batches after it are still refused."""

    def is_before(self, header: BatchHeader) -> bool:
        distance = (header.base_sequence - self.sequence) % _SEQUENCES
        return header.producer_epoch == self.epoch and 0 < distance < _SEQUENCES // 2


class RefusedBatches:
    """Of one leadership. Keeps the first refused batch of each producer, until it is written."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, _Refused] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def add(self, header: BatchHeader, code: ErrorCode) -> None:
        """The batch was refused. The producer is expected to send it again."""
        if header.producer_id < 0 or header.base_sequence < 0:
            return
        known = self._by_producer.get(header.producer_id)
        if known is not None and known.is_before(header):
            return
        if known is None and len(self._by_producer) == MOST_PRODUCERS:
            del self._by_producer[next(iter(self._by_producer))]
        self._by_producer[header.producer_id] = _Refused(header.producer_epoch, header.base_sequence, code)

    def check(self, header: BatchHeader) -> None:
        """ApiError if the batch is after one that was refused."""
        known = self._by_producer.get(header.producer_id)
        if known is None or not known.is_before(header):
            return
        if not known.left:
            del self._by_producer[header.producer_id]
            return
        known.left -= 1
        raise ApiError(
            known.code,
            f"producer {header.producer_id} must send sequence {known.sequence} again before {header.base_sequence}",
        )

    def written(self, header: BatchHeader) -> None:
        """The batch is in the log: just written, or found there. If it was refused, nothing is missing any more."""
        known = self._by_producer.get(header.producer_id)
        if known is not None and (header.producer_epoch, header.base_sequence) >= (known.epoch, known.sequence):
            del self._by_producer[header.producer_id]
