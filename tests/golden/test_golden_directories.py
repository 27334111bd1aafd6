"""Quire starts on directories that Apache Kafka wrote, and serves what Apache Kafka served from them."""

from pathlib import Path

import pytest

from quire.testing import Cluster
from tests.golden.recorded import FOLDERS, NAMES, expected, restore
from tests.golden.served import everything

FOREVER = 2**31 - 1
AS_IT_IS = {
    "log.cleaner.backoff.ms": FOREVER,
    "log.retention.check.interval.ms": FOREVER,
    "offsets.retention.check.interval.ms": FOREVER,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": FOREVER,
    "transaction.remove.expired.transaction.cleanup.interval.ms": FOREVER,
}
"""Settings with which nothing is deleted, compacted or aborted and nothing expires, although the recordings are old."""

LARGEST_BYTES = 96 * 1024
"""Most of the size is the output of DumpLogSegments."""


@pytest.mark.parametrize("recorded", FOLDERS, ids=NAMES)
def test_quire_serves_what_apache_kafka_served(recorded: Path, tmp_path: Path) -> None:
    data_dir = restore(recorded, tmp_path / "data")
    with Cluster(data_dir=data_dir, config=AS_IT_IS) as quire:
        assert everything(quire.bootstrap_servers) == expected(recorded)
        quire.kill()
        quire.restart()
        assert everything(quire.bootstrap_servers) == expected(recorded)


def test_a_torn_end_of_a_killed_kafka_costs_the_torn_batch_alone(tmp_path: Path) -> None:
    (recorded,) = (folder for folder in FOLDERS if folder.name == "unclean")
    data_dir = restore(recorded, tmp_path / "data")
    segment = max((data_dir / "unclean-0").glob("*.log"))
    segment.write_bytes(segment.read_bytes()[:-1])
    whole = expected(recorded)["unclean-0"]
    with Cluster(data_dir=data_dir, config=AS_IT_IS) as quire:
        served = everything(quire.bootstrap_servers)["unclean-0"]
    assert served["end"] == whole["records"][-1]["offset"] == whole["end"] - 1
    assert served["records"] == whole["records"][:-1]
    assert served["committed"] == whole["committed"][:-1]


def test_there_is_one_of_every_kind() -> None:
    assert {folder.name for folder in FOLDERS} >= {
        "plain",
        "codecs",
        "expired",
        "compacted",
        "squeezed",
        "transactional",
        "unclean",
        "coordinated",
    }


def test_they_are_small() -> None:
    for folder in FOLDERS:
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < LARGEST_BYTES
