"""From committed records to the image, and from there to the publishers.

The loader owns the node's image of what is committed. It applies batches in order, holds back the records of a metadata
transaction until it ends, drops those of an aborted one, and calls every publisher once after each advance.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from quire.metadata.delta import ImageDelta
from quire.metadata.image import ClusterImage
from quire.metadata.replay import replay
from quire.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from quire.protocol.schema import Message

log = logging.getLogger("quire.metadata")


Publisher = Callable[[ClusterImage, ImageDelta], None]
"""Called on the event loop with the new image and what changed in it. The image changes later: copy what you keep."""


class CommittedBatch(Protocol):
    """What the loader needs of a batch. A control batch has no records, but it moves the image's offset too."""

    @property
    def last_offset(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def records(self) -> Sequence[Message]: ...


class MetadataLoader:
    __slots__ = ("_delta", "_publishers", "_transaction", "image")

    def __init__(self) -> None:
        self.image = ClusterImage()
        self._delta = ImageDelta()
        self._publishers: list[Publisher] = []
        self._transaction: list[Message] | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open."""
        return self._transaction is not None

    def subscribe(self, publisher: Publisher) -> None:
        """Calls `publisher` with every change from now on, and at once with the present image, as a snapshot."""
        self._publishers.append(publisher)
        if self.image.offset >= 0:
            publisher(self.image, ImageDelta.of_everything(self.image, ClusterImage()))

    def load_snapshot(self, image: ClusterImage) -> None:
        """Replaces the image by that of a snapshot, and calls publishers at once."""
        before, self.image = self.image, image
        self._delta = ImageDelta.of_everything(self.image, before)
        self._transaction = None
        self._publish()

    def apply(self, batches: Iterable[CommittedBatch]) -> None:
        """Everything that was committed since the last call."""
        for batch in batches:
            assert batch.last_offset > self.image.offset, "committed batches come in order, once"
            for record in batch.records:
                self._apply_record(record)
            self.image.offset = batch.last_offset
            self.image.epoch = batch.epoch
            self.image.timestamp_ms = batch.timestamp_ms
        self._publish()

    def _apply_record(self, record: Message) -> None:
        match record:
            case BeginTransactionRecord():
                self._transaction = []
            case EndTransactionRecord():
                held, self._transaction = self._transaction or [], None
                for each in held:
                    replay(self.image, each, self._delta)
            case AbortTransactionRecord():
                log.warning("metadata transaction aborted reason=%s", record.reason)
                self._transaction = None
            case _ if self._transaction is not None:
                self._transaction.append(record)
            case _:
                replay(self.image, record, self._delta)

    def _publish(self) -> None:
        if self._delta.is_empty:
            return
        delta, self._delta = self._delta, ImageDelta()
        for publisher in self._publishers:
            publisher(self.image, delta)
