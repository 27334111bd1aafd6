import pytest

from quire.cli.storage.dump.folders import Contents, Kind, base_offset_of, contents_of, in_order, kind_of, log_beside

SEGMENT = "00000000000000000170"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (f"{SEGMENT}.log", Kind.LOG),
        (f"{SEGMENT}.log.deleted", Kind.LOG),
        (f"{SEGMENT}.log.1.deleted", Kind.LOG),
        (f"{SEGMENT}.log.swap", Kind.LOG),
        (f"{SEGMENT}.index.cleaned", Kind.OFFSET_INDEX),
        (f"{SEGMENT}.timeindex", Kind.TIME_INDEX),
        (f"{SEGMENT}.txnindex", Kind.TRANSACTION_INDEX),
        (f"{SEGMENT}.snapshot", Kind.PRODUCERS),
        (f"{SEGMENT}-0000000003.checkpoint", Kind.METADATA_SNAPSHOT),
        (f"{SEGMENT}-0000000003.checkpoint.part", Kind.METADATA_SNAPSHOT),
        ("bootstrap.checkpoint", Kind.METADATA_SNAPSHOT),
        ("recovery-point-offset-checkpoint", Kind.OFFSETS),
        ("recovery-point-offset-checkpoint.tmp", Kind.OFFSETS),
        ("cleaner-offset-checkpoint", Kind.OFFSETS),
        ("leader-epoch-checkpoint", Kind.LEADER_EPOCHS),
        ("meta.properties", Kind.META_PROPERTIES),
        (".kafka_cleanshutdown", Kind.CLEAN_SHUTDOWN),
        ("quorum-state", Kind.QUORUM_STATE),
        (".lock", None),
        ("notes.txt", None),
    ],
)
def test_a_file_is_known_by_its_name(name: str, kind: Kind | None) -> None:
    assert kind_of(f"data/orders-0/{name}") is kind


@pytest.mark.parametrize(
    ("folder", "contents"),
    [
        ("__consumer_offsets-17", Contents.OFFSETS),
        ("__transaction_state-0", Contents.TRANSACTIONS),
        ("__cluster_metadata-0", Contents.METADATA),
        ("__share_group_state-3", Contents.SHARES),
        ("__consumer_offsets-17.0123456789abcdef0123456789abcdef-delete", Contents.OFFSETS),
        ("orders-0", Contents.PLAIN),
        ("not__consumer_offsets-0", Contents.PLAIN),
    ],
)
def test_the_folder_decides_how_records_are_decoded(folder: str, contents: Contents) -> None:
    assert contents_of(f"data/{folder}/{SEGMENT}.log") is contents


def test_a_file_without_a_folder_is_plain_unless_it_is_a_metadata_snapshot() -> None:
    assert contents_of(f"{SEGMENT}.log") is Contents.PLAIN
    assert contents_of("bootstrap.checkpoint") is Contents.METADATA


def test_an_index_is_shown_beside_its_log() -> None:
    assert log_beside(f"a.b/{SEGMENT}.index") == f"a.b/{SEGMENT}.log"
    assert log_beside(f"{SEGMENT}.timeindex.deleted") == f"{SEGMENT}.log.deleted"
    assert log_beside(f"{SEGMENT}.timeindex.1.deleted") == f"{SEGMENT}.log.1.deleted"
    assert base_offset_of(f"a.b/{SEGMENT}.index") == 170
    assert base_offset_of("bootstrap.checkpoint") is None


def test_a_folder_is_shown_in_reading_order() -> None:
    names = [
        "00000000000000000009.log",
        "00000000000000000000.timeindex",
        "00000000000000000000.log",
        "00000000000000000009.snapshot",
        "leader-epoch-checkpoint",
        "00000000000000000000.index",
        "partition.metadata",
        ".lock",
    ]
    assert in_order("d", names, lambda _: False) == [
        "d/partition.metadata",
        "d/leader-epoch-checkpoint",
        "d/00000000000000000000.log",
        "d/00000000000000000000.index",
        "d/00000000000000000000.timeindex",
        "d/00000000000000000009.snapshot",
        "d/00000000000000000009.log",
    ]


def test_partitions_are_shown_by_number_after_the_files() -> None:
    names = ["b-0", "a-10", "a-2", "meta.properties"]
    assert in_order("d", names, lambda path: "-" in path) == ["d/meta.properties", "d/a-2", "d/a-10", "d/b-0"]
