"""Lost records: an error, or, if the user chose that, a warning with a count.

With `failOnDataLoss` (the default) the job fails with a message that names topic, partition and offsets. Without it the
message is logged, with the number of skipped offsets, and reading continues.
"""

import logging

from pyspark_quire.errors import DataLossError
from quire.client.offsets import TopicPartition

_log = logging.getLogger("pyspark_quire")
_ADVICE = "set failOnDataLoss to false to continue without the lost records"
OPEN_ADVICE = "wait until it ends (quire transactions list --state ongoing shows whose it is)"


class LossPolicy:
    __slots__ = ("fail", "skipped")

    def __init__(self, fail: bool) -> None:
        self.fail = fail
        self.skipped = 0

    def overtaken(self, partition: TopicPartition, wanted: int, earliest: int) -> None:
        """The partition begins after the next offset to be read."""
        self._report(
            f"{partition}: offsets {wanted} to {earliest - 1} are gone, the partition begins at {earliest} now "
            "(retention or delete-records was faster than the job)",
            earliest - wanted,
        )

    def beyond(self, partition: TopicPartition, wanted: int, latest: int) -> None:
        """The partition ends before the next offset: it was truncated or created again."""
        self._report(
            f"{partition}: offset {wanted} is not there, the partition ends at {latest} "
            "(it was truncated, or this checkpoint or offset is from another topic)",
            wanted - latest,
        )

    def held_up(self, partition: TopicPartition, wanted: int, stable: int) -> None:
        """The offset may exist, beyond an open transaction; nothing is lost."""
        self._report(
            f"{partition}: offset {wanted} cannot be read yet with read_committed, a transaction is open from offset "
            f"{stable} on (the last stable offset); {OPEN_ADVICE}, end there, or read with read_uncommitted",
            wanted - stable,
        )

    def recreated(
        self, partition: TopicPartition, read_up_to: int, old_id: str, new_id: str, planned_to: int | None = None
    ) -> None:
        """`planned_to` is the planned end, if known: the old topic had records up to there, which are lost."""
        self._report(
            f"{partition}: topic {partition.topic} was deleted and created again (id {old_id} became {new_id}) "
            f"after offset {read_up_to} had been reached; later records of the old topic are lost",
            0 if planned_to is None else planned_to - read_up_to,
        )

    def deleted(self, partition: TopicPartition, read_up_to: int, planned_to: int | None = None) -> None:
        self._report(
            f"{partition} no longer exists; it was read up to offset {read_up_to}",
            0 if planned_to is None else planned_to - read_up_to,
        )

    def _report(self, sentence: str, skipped: int) -> None:
        if self.fail:
            raise DataLossError(f"{sentence}; {_ADVICE}")
        self.skipped += skipped
        _log.warning("data loss: %s; %d offsets skipped, %d in all so far", sentence, skipped, self.skipped)
