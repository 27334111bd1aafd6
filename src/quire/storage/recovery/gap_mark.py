"""Whether a gap of offsets in a compacted log may come from a power loss, or only from compaction.

After a power loss a segment that was not on disk may be missing while a later one exists. In a topic that was never
compacted, the gap shows that. A compacted topic has gaps anyway, so Quire follows a rule: it compacts nothing beyond
the recovery point that is in the checkpoint on disk. Any gap between segments beyond that point is therefore a loss,
and the log ends there.

Apache Kafka does not follow this rule, and what it has compacted must not be truncated. So the checkpoints of recovery
points and of high watermarks each have an entry, of a partition that cannot exist, which says that the rule holds in
this directory. Apache Kafka drops the entry when it writes these files, some seconds after it starts on the directory.
In a directory without both entries every gap counts as compacted, as in Kafka. The entries are written once all logs
are open and on disk.
"""

from collections.abc import Mapping

from quire.storage.directory.checkpoints import TopicPartition

MARK: TopicPartition = ("quire/no-gaps-beyond", 0)
"""A slash is not allowed in the name of a topic."""


def with_mark(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    return {MARK: 0, **offsets}


def without_mark(offsets: dict[TopicPartition, int]) -> bool:
    """Removes the mark; returns whether it was there."""
    return offsets.pop(MARK, None) is not None
