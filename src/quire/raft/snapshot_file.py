"""Snapshots of the metadata log: `<end offset>-<epoch>.checkpoint`, and `bootstrap.checkpoint` of a new directory.

A snapshot is a file of record batches: a control batch with the header (and, in a dynamic quorum, version and voters),
the records of the state, and a control batch with the footer, at offsets from 0 on. It is written under a temporary
name, synced and renamed, so a name without `.part` is a whole snapshot; reading checks it nevertheless.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from quire.protocol.errors import ApiError, ProtocolError
from quire.protocol.records import (
    BatchHeader,
    ControlRecordType,
    Record,
    build_batch,
    build_control_batch,
    check_crc,
    control_type,
    decode_batch,
    read_header,
    walk_batches,
)
from quire.protocol.schema import Message
from quire.raft.control_batches import (
    header_timestamp,
    quorum_controls,
    read_control,
    snapshot_footer,
    snapshot_header,
)
from quire.raft.control_state import ControlState
from quire.raft.errors import MetadataLogError
from quire.raft.log_summary import LogPosition
from quire.raft.record_frame import decode_frame, encode_frame
from quire.raft.replicas import VoterSet
from quire.seams import Buffer, Disk

BOOTSTRAP_NAME = "bootstrap.checkpoint"
SUFFIX = ".checkpoint"
UNFINISHED_SUFFIX = ".checkpoint.part"
RECORDS_PER_BATCH = 1000
HEADER_READ_BYTES = 4096

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotError(MetadataLogError):
    """A snapshot that is not complete."""


class Snapshot(NamedTuple):
    """The content of a file. `position` is where the log continues after it."""

    position: LogPosition
    last_contained_timestamp_ms: int
    control: ControlState
    records: list[Message]


def file_name(position: LogPosition) -> str:
    return f"{position.offset:020d}-{position.epoch:010d}{SUFFIX}"


def unfinished_name(name: str) -> str:
    """The name of a snapshot's file until it is whole."""
    return f"{name.removesuffix(SUFFIX)}{UNFINISHED_SUFFIX}"


def download_name(position: LogPosition, number: int) -> str:
    """The name of a snapshot's file while another node sends it; `number` is different for each download."""
    return f"{file_name(position).removesuffix(SUFFIX)}.{number}{UNFINISHED_SUFFIX}"


def parse_name(name: str) -> LogPosition | None:
    match = _NAME.fullmatch(name)
    return LogPosition(int(match[2]), int(match[1])) if match else None


def list_snapshots(disk: Disk, folder: str) -> list[LogPosition]:
    """The snapshots in a folder, the oldest first."""
    found = (parse_name(name) for name in disk.list_dir(folder))
    return sorted((each for each in found if each is not None), key=lambda position: position.offset)


def encode_snapshot(
    records: Iterable[tuple[Message, int]],
    *,
    epoch: int,
    now_ms: int,
    last_contained_timestamp_ms: int,
    kraft_version: int = 0,
    voters: VoterSet | None = None,
) -> Iterator[bytearray]:
    """The batches of a snapshot, from records and the version to write each in."""
    controls = [snapshot_header(last_contained_timestamp_ms)]
    if voters is not None:
        controls += quorum_controls(kraft_version, voters)
    yield build_control_batch(controls, now_ms, base_offset=0, leader_epoch=epoch)
    offset = len(controls)
    remaining = iter(records)
    while some := list(islice(remaining, RECORDS_PER_BATCH)):
        batch = [Record(0, now_ms, None, encode_frame(record, version)) for record, version in some]
        yield build_batch(batch, base_offset=offset, leader_epoch=epoch)
        offset += len(batch)
    yield build_control_batch([snapshot_footer()], now_ms, base_offset=offset, leader_epoch=epoch)


def write_snapshot(disk: Disk, folder: str, name: str, batches: Iterable[Buffer]) -> None:
    """Blocks; for a job. A crash leaves no snapshot of this name, or the whole one."""
    temporary = f"{folder}/{unfinished_name(name)}"
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        position = 0
        for batch in batches:
            position += file.pwritev([batch], position)
        file.sync()
    except OSError:
        # Most likely the disk was full, so what was written must not stay.
        with suppress(OSError):
            disk.remove(temporary)
        raise
    finally:
        file.close()
    disk.rename(temporary, f"{folder}/{name}")
    disk.sync_dir(folder)


def read_snapshot(disk: Disk, folder: str, name: str) -> Snapshot:
    """Reads and checks the whole file; SnapshotError if it is damaged or not a snapshot."""
    path = f"{folder}/{name}"
    content = disk.read_file(path)
    control = ControlState()
    records: list[Message] = []
    try:
        headers = _whole_batches(content, path)
        first = decode_batch(content, headers[0])
        timestamp_ms = header_timestamp(first[0])
        for header in headers:
            decoded = decode_batch(content, header)
            if header.is_control:
                control = control.after(read_control(decoded))
            else:
                records.extend(decode_frame(record.value) for record in decoded)
        if control_type(decode_batch(content, headers[-1])[-1]) is not ControlRecordType.SNAPSHOT_FOOTER:
            raise SnapshotError(f"{path} ends without a footer")
    except (ApiError, ProtocolError) as error:
        raise SnapshotError(f"{path} is damaged: {error}") from error
    return Snapshot(parse_name(name) or LogPosition(0, 0), timestamp_ms, control, records)


def read_timestamp(disk: Disk, folder: str, name: str) -> int:
    """The timestamp of the last record a snapshot covers, from its header alone; 0 if that cannot be read."""
    file = disk.open(f"{folder}/{name}")
    try:
        start = file.pread(HEADER_READ_BYTES, 0)
        header = read_header(start)
        return header_timestamp(
            decode_batch(start if header.end <= len(start) else file.pread(header.end, 0), header)[0]
        )
    except (ApiError, ProtocolError):
        return 0
    finally:
        file.close()


def _whole_batches(content: bytes, path: str) -> list[BatchHeader]:
    headers = walk_batches(content)
    if not headers or headers[-1].end != len(content):
        raise SnapshotError(f"{path} is damaged: it ends within a batch")
    for header in headers:
        check_crc(content, header)
    return headers
