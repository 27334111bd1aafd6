"""The small files, which are read whole: producer snapshots, checkpoints, and the owner of a folder."""

import json
from collections.abc import Callable, Iterator

from quire.cli.storage.dump.contents import plain
from quire.cli.storage.dump.facts import Fact, problem
from quire.cli.storage.dump.folders import Kind
from quire.config.errors import ConfigError
from quire.config.properties import read_properties
from quire.protocol import uuids
from quire.protocol.codec import decode
from quire.protocol.errors import ProtocolError
from quire.protocol.messages.producer_snapshot import ProducerSnapshot
from quire.protocol.records.checksum import crc32c
from quire.raft import quorum_state
from quire.raft.errors import MetadataLogError
from quire.storage.directory.checkpoints import CheckpointError, parse_offsets
from quire.storage.directory.meta_properties import parse_meta
from quire.storage.directory.partition_metadata import parse_partition_metadata
from quire.storage.errors import DataDirectoryError
from quire.storage.leader_epochs import parse_epochs
from quire.storage.producers import producer_snapshot

_UNREADABLE = (
    CheckpointError,
    ConfigError,
    DataDirectoryError,
    MetadataLogError,
    ProtocolError,
    ValueError,
    KeyError,
    TypeError,
)


def dump_small_file(kind: Kind, content: bytes, path: str) -> Iterator[Fact]:
    """The facts of the file; a `problem` if it is not valid."""
    try:
        yield from _READERS[kind](content, path)
    except _UNREADABLE as error:
        yield problem(None, str(error).removeprefix(f"{path} ").removeprefix(f"{path}: "))


def _producers(content: bytes, path: str) -> Iterator[Fact]:
    version = int.from_bytes(content[:2], "big")
    if version != producer_snapshot.VERSION:
        raise ProtocolError(f"version {version} is not {producer_snapshot.VERSION}")
    snapshot = decode(ProducerSnapshot, content, version, 2)
    for entry in snapshot.producer_entries:
        yield Fact("producer", plain(entry, version))
    if crc32c(content[producer_snapshot.CHECKSUM_FROM :]) != snapshot.crc:
        yield problem(2, "the checksum does not match")


def _offsets(content: bytes, path: str) -> Iterator[Fact]:
    for (topic, partition), offset in parse_offsets(content, path).items():
        yield Fact("checkpoint_entry", {"topic": topic, "partition": partition, "offset": offset})


def _leader_epochs(content: bytes, path: str) -> Iterator[Fact]:
    for epoch, start_offset in parse_epochs(content, path):
        yield Fact("leader_epoch", {"epoch": epoch, "start_offset": start_offset})


def _partition_metadata(content: bytes, path: str) -> Iterator[Fact]:
    yield Fact("properties", {"topic_id": uuids.to_text(parse_partition_metadata(content))})


def _meta_properties(content: bytes, path: str) -> Iterator[Fact]:
    found = read_properties(content.decode())
    yield Fact("properties", {name: found[name].value for name in sorted(found)})
    parse_meta(content, path)


def _quorum_state(content: bytes, path: str) -> Iterator[Fact]:
    quorum_state.decode(content)
    yield Fact("properties", json.loads(content))


def _clean_shutdown(content: bytes, path: str) -> Iterator[Fact]:
    said = json.loads(content)
    yield Fact("properties", {"version": said["version"], "broker_epoch": said["brokerEpoch"]})


def _registration(content: bytes, path: str) -> Iterator[Fact]:
    said = json.loads(content)
    facts = {"version": said["version"], "broker_epoch": said["brokerEpoch"], "cache_id": said["cacheId"]}
    if "registering" in said:
        facts["registering"] = said["registering"]
    yield Fact("properties", facts)


_READERS: dict[Kind, Callable[[bytes, str], Iterator[Fact]]] = {
    Kind.PRODUCERS: _producers,
    Kind.OFFSETS: _offsets,
    Kind.LEADER_EPOCHS: _leader_epochs,
    Kind.PARTITION_METADATA: _partition_metadata,
    Kind.META_PROPERTIES: _meta_properties,
    Kind.QUORUM_STATE: _quorum_state,
    Kind.CLEAN_SHUTDOWN: _clean_shutdown,
    Kind.REGISTRATION: _registration,
}
