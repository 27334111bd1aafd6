"""Feature levels, and the record versions of each metadata.version, as in Kafka 4.3.1."""

import pytest

from quire.metadata.features import (
    METADATA_VERSION,
    SUPPORTED,
    metadata_version_level,
    metadata_version_name,
    record_version,
)
from quire.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)


@pytest.mark.parametrize(
    ("level", "name", "register_broker", "partition"),
    [
        (7, "3.3-IV3", 1, 0),
        (8, "3.4-IV0", 2, 0),
        (16, "3.7-IV1", 2, 0),
        (17, "3.7-IV2", 3, 1),
        (22, "4.0-IV0", 3, 1),
        (23, "4.0-IV1", 3, 2),
        (29, "4.2-IV1", 3, 2),
        (30, "4.3-IV0", 4, 2),
    ],
)
def test_records_are_written_in_the_version_of_the_cluster(
    level: int, name: str, register_broker: int, partition: int
) -> None:
    assert metadata_version_name(level) == name
    assert record_version(RegisterBrokerRecord(), level) == register_broker
    assert record_version(PartitionRecord(), level) == partition
    assert record_version(PartitionChangeRecord(), level) == partition
    assert record_version(TopicRecord(), level) == 0


def test_a_broker_change_is_written_in_the_oldest_version_that_carries_it() -> None:
    change = BrokerRegistrationChangeRecord
    assert record_version(change(fenced=-1), 30) == 0
    assert record_version(change(in_controlled_shutdown=1), 30) == 1
    assert record_version(change(log_dirs=[bytes(16)]), 30) == 2
    assert record_version(change(cordoned_log_dirs=[]), 30) == 3


def test_every_level_of_the_metadata_version_has_a_name() -> None:
    oldest, newest = SUPPORTED[METADATA_VERSION]
    assert len({metadata_version_name(level) for level in range(oldest, newest + 1)}) == newest - oldest + 1


def test_a_level_is_found_by_its_name_and_by_its_release() -> None:
    low, high = SUPPORTED[METADATA_VERSION]
    assert all(metadata_version_level(metadata_version_name(level)) == level for level in range(low, high + 1))
    assert [metadata_version_level(name) for name in ("3.7", "4.2", "4.3", "4.4", "")] == [19, 29, 30, None, None]
