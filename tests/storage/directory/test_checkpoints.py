import pytest

from quire.storage.directory.checkpoints import CheckpointError, parse_offsets, read_offsets, write_offsets
from simulator.disk import SimDisk

PATH = "data/recovery-point-offset-checkpoint"


def test_the_file_has_version_count_and_a_line_per_partition(disk: SimDisk) -> None:
    write_offsets(disk, PATH, {("orders", 0): 170, ("my.topic-x", 12): 9_000_000_000})
    assert disk.read_file(PATH) == b"0\n2\norders 0 170\nmy.topic-x 12 9000000000\n"
    assert read_offsets(disk, PATH) == {("orders", 0): 170, ("my.topic-x", 12): 9_000_000_000}


def test_no_partitions_are_a_file_too(disk: SimDisk) -> None:
    write_offsets(disk, PATH, {})
    assert disk.read_file(PATH) == b"0\n0\n"
    assert read_offsets(disk, PATH) == {}


def test_a_missing_file_has_no_offsets(disk: SimDisk) -> None:
    assert read_offsets(disk, PATH) == {}


def test_an_empty_file_has_no_offsets() -> None:
    assert parse_offsets(b"", "as Apache Kafka leaves it") == {}


@pytest.mark.parametrize(
    "content",
    [
        b"0\n",
        b"1\n0\n",
        b"0\n2\norders 0 170\n",
        b"0\n1\norders 0 170\norders 1 5\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders x 5\n",
        b"0\n1\norders 0 -5\n",
        b"0\n1\nmy topic 0 5\n",
        b"0\n1\n\xff\xff 0 5\n",
    ],
)
def test_a_malformed_file_is_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError, match="somewhere"):
        parse_offsets(content, "somewhere")
