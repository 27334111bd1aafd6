"""Whether a gap of offsets in a compacted log can have been left by a power loss, or by compaction alone.

A segment that was not on disk may be gone after a power loss while a later one is there. In a topic that was never
compacted its offsets are missed. In a compacted one offsets are missing anyway, and only this tells the two apart:
Quire compacts nothing beyond the recovery point that is in the checkpoint for good. So between segments beyond it
nothing can be missing but what was lost, and with that goes all that came after it.

Apache Kafka does not keep to this, and what it has compacted must not be cut. So the checkpoints of recovery points and
of high watermarks each have an entry, of a partition that cannot exist, which says that the rule holds in this
directory. Apache Kafka leaves it out when it writes these files, some seconds after it has taken the directory over. A
directory without both entries is another's: there every gap is taken for compaction's, as Kafka does, and the entries
are written once all logs are open and on disk.
"""

from collections.abc import Mapping

from quire.storage.checkpoints import TopicPartition

MARK: TopicPartition = ("quire/no-gaps-beyond", 0)
"""A slash is not allowed in the name of a topic."""


def with_mark(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    return {MARK: 0, **offsets}


def without_mark(offsets: dict[TopicPartition, int]) -> bool:
    """Takes the mark out; returns whether it was there."""
    return offsets.pop(MARK, None) is not None
