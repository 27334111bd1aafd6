"""The comparison of metadata logs finds differences, and covers only offsets that all nodes have."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from quire.protocol.messages.metadata_records import TopicRecord
from quire.protocol.records import Record, build_batch
from quire.raft.record_frame import encode_frame
from tests.crash.metadata_files import common_image

FIRST_SEGMENT = "00000000000000000000.log"


def write_log(folder: Path, topics: Sequence[str], epochs: Sequence[int]) -> Path:
    """One topic for each offset."""
    folder.mkdir()
    with (folder / FIRST_SEGMENT).open("wb") as segment:
        for offset, (topic, epoch) in enumerate(zip(topics, epochs, strict=True)):
            record = encode_frame(TopicRecord(name=topic, topic_id=topic.encode().ljust(16)), 0)
            segment.write(build_batch([Record(0, 1, None, record)], base_offset=offset, leader_epoch=epoch))
    return folder


def test_equal_logs_have_one_image_at_the_last_offset_that_all_have(tmp_path: Path) -> None:
    longer = write_log(tmp_path / "1", ["a", "b", "c"], [1, 1, 2])
    shorter = write_log(tmp_path / "2", ["a", "b"], [1, 1])
    assert common_image([longer, shorter]).topics_by_name.keys() == {"a", "b"}


@pytest.mark.parametrize(("topics", "epochs"), [(["a", "x"], [1, 1]), (["a", "b"], [1, 2])], ids=["record", "epoch"])
def test_logs_that_differ_are_found(tmp_path: Path, topics: list[str], epochs: list[int]) -> None:
    right = write_log(tmp_path / "1", ["a", "b"], [1, 1])
    other = write_log(tmp_path / "2", topics, epochs)
    with pytest.raises(AssertionError, match="at 1"):
        common_image([right, other])
