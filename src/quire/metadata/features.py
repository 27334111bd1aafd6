"""The features of a cluster, the levels that this node supports, and the record versions of each metadata.version.

A FeatureLevelRecord finalizes a feature at a level; at level 0 it is off and has no record. This node refuses levels
that it does not know, by name, because it could not do what they require.
"""

from collections.abc import Mapping

from quire.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from quire.protocol.schema import Message

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"

SUPPORTED: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 30),
    KRAFT_VERSION: (0, 1),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
    GROUP_VERSION: (0, 1),
    SHARE_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
}
"""Every feature of Kafka 4.3 and the levels that this node supports."""

NEEDS_METADATA_VERSION: dict[tuple[str, int], int] = {(ELIGIBLE_LEADER_REPLICAS_VERSION, 1): 23}
"""Levels that may be finalized only above a metadata.version."""

FORMAT_LEVELS: dict[str, int] = {
    METADATA_VERSION: 30,
    ELIGIBLE_LEADER_REPLICAS_VERSION: 1,
    GROUP_VERSION: 1,
    TRANSACTION_VERSION: 2,
}
"""The levels of a newly formatted directory. Features that Quire does not have yet stay at 0."""

METADATA_VERSION_NAMES: tuple[str, ...] = (
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1",
    "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0",
    "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
)  # fmt: skip
"""Kafka's names of the levels of metadata.version, from the oldest supported on."""

CHANGED_METADATA = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
"""Levels of metadata.version whose records hold what those of the level below cannot; the others may be left again."""

_MIGRATION = 8
_BROKER_EPOCHS_IN_FETCHES = 10
_TRANSACTIONS = 13
_CONTROLLER_REGISTRATIONS = 15
_DIRECTORIES = 17
_ELIGIBLE_LEADER_REPLICAS = 23
_CORDONED_DIRECTORIES = 30


class UnsupportedMetadataError(Exception):
    """The metadata log holds something that this node does not support, so it must not continue."""


def check_supported(name: str, level: int) -> None:
    """Raises UnsupportedMetadataError unless this node supports the level."""
    if level == 0:
        return
    low, high = SUPPORTED.get(name, (0, 0))
    if not low <= level <= high:
        known = f"levels {low} to {high}" if high else "nothing of it"
        raise UnsupportedMetadataError(
            f"the cluster has feature {name} at level {level}, and this node knows {known}; "
            "upgrade this node, or downgrade the feature first"
        )


def level_without_return(present: int, level: int) -> int | None:
    """The highest metadata.version above `level` whose metadata would be lost by going down to it; None: none."""
    return max((each for each in CHANGED_METADATA if level < each <= present), default=None)


def metadata_version_level(name: str) -> int | None:
    """The level of `4.2-IV1`, or of the release `4.2` as its last version; None if it is not known."""
    known = {each: SUPPORTED[METADATA_VERSION][0] + index for index, each in enumerate(METADATA_VERSION_NAMES)}
    known |= {each.partition("-")[0]: level for each, level in known.items()}
    return known.get(name)


def metadata_version_name(level: int) -> str:
    return METADATA_VERSION_NAMES[level - SUPPORTED[METADATA_VERSION][0]]


def has_broker_epochs(metadata_version: int) -> bool:
    """Whether every broker that fetches as a follower says under which registration (KIP-903)."""
    return metadata_version >= _BROKER_EPOCHS_IN_FETCHES


def has_transactions(metadata_version: int) -> bool:
    """Whether the log may hold Begin, End and AbortTransaction records."""
    return metadata_version >= _TRANSACTIONS


def has_directories(metadata_version: int) -> bool:
    return metadata_version >= _DIRECTORIES


def has_controller_registrations(metadata_version: int) -> bool:
    return metadata_version >= _CONTROLLER_REGISTRATIONS


def has_cordoned_directories(metadata_version: int) -> bool:
    return metadata_version >= _CORDONED_DIRECTORIES


def has_eligible_leader_replicas(features: Mapping[str, int]) -> bool:
    return features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1


def record_version(record: Message, metadata_version: int) -> int:
    """The version in which Kafka writes a record under this metadata.version."""
    match record:
        case RegisterBrokerRecord():
            return _highest((4, _CORDONED_DIRECTORIES), (3, _DIRECTORIES), (2, _MIGRATION), at=metadata_version) or 1
        case PartitionRecord() | PartitionChangeRecord():
            return _highest((2, _ELIGIBLE_LEADER_REPLICAS), (1, _DIRECTORIES), at=metadata_version)
        case BrokerRegistrationChangeRecord():
            if record.cordoned_log_dirs is not None:
                return 3
            return 2 if record.log_dirs else 1 if record.in_controlled_shutdown else 0
        case _:
            return 0


def _highest(*versions_from_level: tuple[int, int], at: int) -> int:
    return next((version for version, level in versions_from_level if at >= level), 0)
