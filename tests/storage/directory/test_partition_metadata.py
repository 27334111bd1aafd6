import logging

import pytest

from quire.protocol import uuids
from quire.storage.directory.partition_metadata import read_topic_id, write_topic_id
from simulator.disk import SimDisk
from tests.storage.batches import FOLDER

TOPIC_ID = uuids.from_text("kYDlrdgMTVuWpIoDzcXjOw")


def test_the_file_has_version_and_topic_id(disk: SimDisk) -> None:
    path = write_topic_id(disk, FOLDER, TOPIC_ID)
    assert disk.read_file(path) == b"version: 0\ntopic_id: kYDlrdgMTVuWpIoDzcXjOw"
    assert read_topic_id(disk, FOLDER) == TOPIC_ID


@pytest.mark.parametrize("content", [b"", b"version: 1\ntopic_id: kYDlrdgMTVuWpIoDzcXjOw", b"version: 0\n", b"\xff"])
def test_a_malformed_file_counts_as_missing(disk: SimDisk, caplog: pytest.LogCaptureFixture, content: bytes) -> None:
    assert read_topic_id(disk, FOLDER) is None
    disk.open(f"{FOLDER}/partition.metadata", create=True).pwritev([content], 0)
    with caplog.at_level(logging.WARNING):
        assert read_topic_id(disk, FOLDER) is None
    assert "partition.metadata" in caplog.text


def test_writing_again_replaces_longer_content(disk: SimDisk) -> None:
    disk.open(f"{FOLDER}/partition.metadata", create=True).pwritev([b"x" * 100], 0)
    write_topic_id(disk, FOLDER, TOPIC_ID)
    assert read_topic_id(disk, FOLDER) == TOPIC_ID


def test_a_file_of_zeros_after_a_power_loss_is_an_error_that_says_what_belongs_there(
    disk: SimDisk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.open(f"{FOLDER}/partition.metadata", create=True).pwritev([bytes(44)], 0)
    assert read_topic_id(disk, FOLDER) is None
    assert "expected version 0 and a topic_id" in caplog.text
