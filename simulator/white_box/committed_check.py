"""What is committed in the metadata log: the same batches on every node, through every fault.

The logs of nodes are prefixes of each other up to their high watermarks. The check remembers every batch that it has
seen below a high watermark, so it also finds one that was committed once and is another one later. It reads the files
without disturbing the disk's faults.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quire.protocol.records import walk_batches
from quire.raft.log_store import FOLDER
from simulator.disk import SimDisk
from simulator.life import Life
from simulator.violation import Violation

SAME_LOG = "what is committed in the metadata log is the same on every node, and stays"
SAME_IMAGE = "nodes that have applied the same offset have the same image"
SEGMENT = ".log"


class BatchSeen(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    crc: int


class Reader(NamedTuple):
    """How far the log of one life has been compared: a segment, and a position in it."""

    life: Life
    segment: str
    position: int


class Looked(NamedTuple):
    """What a check depends on: if all of it is as before, the log has nothing new that is committed."""

    life: Life
    high_watermark: int
    names: Sequence[str]
    """In the folder."""
    last: str
    changes: int
    """Of the last segment, in which the check ended."""

    def is_still(self, life: Life, high_watermark: int, names: Sequence[str], disk: SimDisk) -> bool:
        return (
            self.high_watermark == high_watermark
            and self.names is names
            and self.life == life
            and self.changes == disk.peek_changes(self.last)
        )


class CommittedCheck:
    def __init__(self) -> None:
        self._batch_at: dict[int, tuple[BatchSeen, str]] = {}
        """Per offset, its batch and the node that had it first."""
        self._readers: dict[str, Reader] = {}
        self._looked: dict[str, Looked] = {}
        self._digests: dict[int, tuple[str, str]] = {}
        self.compared = 0

    def check(self, life: Life, disk: SimDisk, folder: str, high_watermark: int) -> None:
        """Compares what a node has committed since the last check."""
        path = f"{folder}/{FOLDER}"
        names = disk.peek_names(path)
        looked = self._looked.get(life.node)
        if looked is not None and looked.is_still(life, high_watermark, names, disk):
            return
        segments = [name for name in names if name.endswith(SEGMENT)]
        if not segments:
            return
        reader = self._readers.get(life.node)
        if reader is None or reader.life != life or reader.segment not in segments:
            reader = Reader(life, segments[0], 0)
        for segment in segments[segments.index(reader.segment) :]:
            position = reader.position if segment == reader.segment else 0
            content = disk.peek(f"{path}/{segment}", position)
            reader = self._compare(reader, content, segment, position, high_watermark)
        self._readers[life.node] = reader
        last = f"{path}/{segments[-1]}"
        self._looked[life.node] = Looked(life, high_watermark, names, last, disk.peek_changes(last))

    def _compare(self, reader: Reader, content: bytes, segment: str, position: int, high_watermark: int) -> Reader:
        for header in walk_batches(content):
            if header.last_offset >= high_watermark:
                break
            self.has(
                reader.life.node, BatchSeen(header.base_offset, header.last_offset, header.leader_epoch, header.crc)
            )
            position += header.size
        return Reader(reader.life, segment, position)

    def has(self, node: str, batch: BatchSeen) -> None:
        self.compared += 1
        for offset in range(batch.base_offset, batch.last_offset + 1):
            before, witness = self._batch_at.setdefault(offset, (batch, node))
            if before != batch:
                raise Violation(SAME_LOG, f"{witness} had {before}, and {node} has {batch}")

    def has_image(self, node: str, offset: int, digest: str) -> None:
        before, witness = self._digests.setdefault(offset, (digest, node))
        if before != digest:
            raise Violation(SAME_IMAGE, f"at offset {offset}, {witness} and {node} differ")
