import pytest

from quire.cli.storage.dump.facts import Fact
from quire.cli.storage.dump.folders import Kind
from quire.cli.storage.dump.small_files import dump_small_file
from quire.protocol import uuids
from quire.storage.directory.meta_properties import MetaProperties, format_meta
from quire.storage.directory.partition_metadata import format_partition_metadata
from quire.storage.producers.producer_snapshot import to_bytes
from quire.storage.producers.producer_state import ProducerState
from tests.storage.batches import batch, header

ID = bytes(range(16))


def told(kind: Kind, content: bytes) -> list[Fact]:
    return list(dump_small_file(kind, content, "some/path"))


def snapshot() -> bytes:
    state = ProducerState()
    state.update(header(batch(b"a", b"b", base_offset=4, producer_id=7, producer_epoch=1, sequence=0)))
    return to_bytes(state)


def test_producers() -> None:
    (fact,) = told(Kind.PRODUCERS, snapshot())
    assert fact.kind == "producer"
    assert (fact.fields["producer_id"], fact.fields["epoch"], fact.fields["last_sequence"]) == (7, 1, 1)
    assert (fact.fields["last_offset"], fact.fields["offset_delta"]) == (5, 1)


def test_checkpoints() -> None:
    assert told(Kind.OFFSETS, b"0\n2\norders 0 5\norders 1 7\n") == [
        Fact("checkpoint_entry", {"topic": "orders", "partition": 0, "offset": 5}),
        Fact("checkpoint_entry", {"topic": "orders", "partition": 1, "offset": 7}),
    ]
    assert told(Kind.LEADER_EPOCHS, b"0\n1\n3 90\n") == [Fact("leader_epoch", {"epoch": 3, "start_offset": 90})]


def test_properties() -> None:
    text = uuids.to_text(ID)
    assert told(Kind.PARTITION_METADATA, format_partition_metadata(ID)) == [Fact("properties", {"topic_id": text})]
    meta = format_meta(MetaProperties("cluster", 3, ID)) + b"mine=1\n"
    assert told(Kind.META_PROPERTIES, meta) == [
        Fact(
            "properties",
            {"cluster.id": "cluster", "directory.id": text, "mine": "1", "node.id": "3", "version": "1"},
        )
    ]
    assert told(Kind.CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":12}') == [
        Fact("properties", {"version": 0, "broker_epoch": 12})
    ]
    state = b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    assert told(Kind.QUORUM_STATE, state)[0].fields["leaderEpoch"] == 3


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (Kind.PRODUCERS, b""),
        (Kind.PRODUCERS, b"\x00\x02"),
        (Kind.PRODUCERS, snapshot()[:-1]),
        (Kind.PRODUCERS, snapshot()[:-1] + b"\x01"),
        (Kind.OFFSETS, b"0"),
        (Kind.OFFSETS, b"0\n2\norders 0 5\n"),
        (Kind.OFFSETS, b"\xff"),
        (Kind.LEADER_EPOCHS, b"0\n1\nx y\n"),
        (Kind.PARTITION_METADATA, b"version: 1\n"),
        (Kind.PARTITION_METADATA, b"nothing"),
        (Kind.META_PROPERTIES, b"version=0\n"),
        (Kind.META_PROPERTIES, b"\xff"),
        (Kind.QUORUM_STATE, b"{}"),
        (Kind.QUORUM_STATE, b"[]"),
        (Kind.CLEAN_SHUTDOWN, b""),
        (Kind.CLEAN_SHUTDOWN, b"{}"),
    ],
)
def test_a_malformed_file_is_a_problem(kind: Kind, content: bytes) -> None:
    assert [fact.kind for fact in told(kind, content)][-1] == "problem"
