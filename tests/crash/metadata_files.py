"""The metadata logs of several nodes must be one log, and so one image.

It reads snapshots and segments of nodes that do not run.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from quire.metadata.image import ClusterImage
from quire.metadata.loader import MetadataLoader
from quire.metadata.snapshot import image_of
from quire.protocol.records import BatchHeader, check_crc, decode_batch, walk_batches
from quire.raft.log_store import CommittedBatch
from quire.raft.record_frame import decode_frame
from quire.raft.snapshot_file import file_name, list_snapshots, read_snapshot
from quire.real.disk import RealDisk
from simulator.white_box.image_digest import image_digest


class BatchAt(NamedTuple):
    last_offset: int
    epoch: int
    crc: int


class MetadataFiles:
    """The metadata log in a folder: its batches by their base offsets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.batches: dict[int, BatchAt] = {}
        for _, header in self._read():
            self.batches[header.base_offset] = BatchAt(header.last_offset, header.leader_epoch, header.crc)

    @property
    def end_offset(self) -> int:
        return max(batch.last_offset for batch in self.batches.values()) + 1

    def image_at(self, end_offset: int) -> ClusterImage:
        """From the newest snapshot that is not beyond `end_offset`, and the batches after it."""
        disk, loader = RealDisk(read_only=True), MetadataLoader()
        start = 0
        positions = [each for each in list_snapshots(disk, str(self.folder)) if each.offset <= end_offset]
        if positions:
            position = positions[-1]
            snapshot = read_snapshot(disk, str(self.folder), file_name(position))
            start = position.offset
            timestamp_ms = snapshot.last_contained_timestamp_ms
            loader.load_snapshot(image_of(snapshot.records, start - 1, position.epoch, timestamp_ms))
        loader.apply(self._decoded(start, end_offset))
        return loader.image

    def _decoded(self, start: int, end: int) -> Iterator[CommittedBatch]:
        for content, header in self._read():
            if start <= header.base_offset and header.last_offset < end:
                assert header.base_offset == start, f"{self.folder} has no batch at {start}"
                start = header.next_offset
                records = (
                    [] if header.is_control else [decode_frame(each.value) for each in decode_batch(content, header)]
                )
                yield CommittedBatch(
                    header.base_offset, header.last_offset, header.leader_epoch, header.max_timestamp, 0, records
                )
        assert start == end, f"{self.folder} ends at {start}"

    def _read(self) -> Iterator[tuple[bytes, BatchHeader]]:
        for segment in sorted(self.folder.glob("*.log")):
            content = segment.read_bytes()
            for header in walk_batches(content):
                check_crc(content, header)
                yield content, header


def common_image(folders: Iterable[Path]) -> ClusterImage:
    """The image at the last offset that all nodes have; their logs and their images are the same up to there."""
    nodes = [MetadataFiles(folder) for folder in folders]
    end = min(node.end_offset for node in nodes)
    first, *others = nodes
    for other in others:
        for offset in first.batches.keys() & other.batches.keys():
            if offset < end:
                assert first.batches[offset] == other.batches[offset], f"{first.folder}, {other.folder} at {offset}"
    images = [node.image_at(end) for node in nodes]
    assert len({image_digest(image) for image in images}) == 1, f"the images at {end} differ"
    return images[0]
