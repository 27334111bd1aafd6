import pytest

from quire.storage.file_names import (
    deleted_folder,
    is_deleted_folder,
    offset_file,
    parse_offset_file,
    parse_partition_folder,
    partition_folder,
)


def test_segment_files_have_twenty_digits() -> None:
    assert offset_file(170, ".log") == "00000000000000000170.log"
    assert parse_offset_file("00000000000000000170.timeindex") == (170, ".timeindex")


@pytest.mark.parametrize(
    "name",
    [
        "170.log",
        "00000000000000000170.log.deleted",
        "00000000000000000170-0000000003.checkpoint",
        "leader-epoch-checkpoint",
        "0000000000000000017x.log",
    ],
)
def test_other_files_are_not_of_a_segment(name: str) -> None:
    assert parse_offset_file(name) is None


@pytest.mark.parametrize("topic", ["orders", "a-b-c", "with.dots_and-1", "__cluster_metadata"])
def test_a_partitions_folder_is_topic_dash_number(topic: str) -> None:
    assert parse_partition_folder(partition_folder(topic, 12)) == (topic, 12)


@pytest.mark.parametrize("name", ["orders", "orders-", "orders-01", "orders-x", "lost+found", "-1", "orders-0-delete"])
def test_other_folders_are_not_of_a_partition(name: str) -> None:
    assert parse_partition_folder(name) is None


def test_a_deleted_folder_is_recognised_and_fits_the_file_system() -> None:
    name = deleted_folder("t" * 249, 3, bytes(range(16)))
    assert name.endswith("-3.000102030405060708090a0b0c0d0e0f-delete")
    assert len(name) == 255
    assert is_deleted_folder(name)
    assert parse_partition_folder(name) is None
    assert not is_deleted_folder("orders-0-delete")
