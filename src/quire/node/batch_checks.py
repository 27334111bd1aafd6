"""Runs checks of produced batches in jobs if they take too long for the event loop.

Most requests are checked during the append. If a check would take long (see `BatchCheck`), the request waits for a job
and is then handled as if it had arrived after the job. Leadership, sequence numbers and open transactions are all
checked after the wait, together with the append. No other request waits: what other clients append to the same
partition meanwhile comes first. The client's own next request is not read before this one is done.
"""

from collections.abc import Callable, Sequence

from quire.node.partitions import Partitions
from quire.protocol.errors import ApiError
from quire.protocol.messages.produce import ProduceRequest, TopicProduceData
from quire.protocol.records.batch import CODEC_MASK, CODEC_POSITION
from quire.protocol.records.expansion import Expansion
from quire.replication.batch_check import AT_ONCE_BYTES, PLAIN_BYTES_PER_COST, BatchCheck
from quire.replication.partition import Partition
from quire.seams import Jobs
from quire.storage.few_jobs import FewJobs

_JOBS_AT_ONCE = 2
_SMALL_PART = 256

Checks = dict[Partition, BatchCheck]
"""The checks of one request, by partition."""


class BatchChecks:
    __slots__ = ("_jobs", "at_once_bytes", "plain_bytes", "small_bytes")

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = FewJobs(jobs, _JOBS_AT_ONCE, computes=True)
        self.at_once_bytes = 0
        """The decompressed bytes of one request that are handled without a job."""
        self.small_bytes = 0
        """Uncompressed batches up to this size need no job, even if they are recompressed."""
        self.plain_bytes = 0
        """The same limit for uncompressed batches that are only checked."""
        self.bound(AT_ONCE_BYTES)

    def bound(self, at_once_bytes: int) -> None:
        """Sets the amount of work that is done without a job. The simulator makes it small."""
        self.at_once_bytes = at_once_bytes
        self.small_bytes = at_once_bytes // _SMALL_PART
        self.plain_bytes = at_once_bytes * PLAIN_BYTES_PER_COST

    def unneeded(self, partitions: Partitions, request: ProduceRequest) -> bool:
        """Whether `LeaderRole.append` can check the request by itself: it is uncompressed and not huge, as most are."""
        size_bytes = 0
        for topic in request.topic_data:
            for data in topic.partition_data:
                records = data.records
                if records is not None:
                    size = len(records)
                    if size > CODEC_POSITION and records[CODEC_POSITION] & CODEC_MASK:
                        return False
                    size_bytes += size
        if size_bytes <= self.small_bytes:
            return True
        if size_bytes > self.plain_bytes or request.transactional_id is not None:
            # The topic's settings may change while the request waits for the transaction's coordinator.
            return False
        return not any(
            _is_recompressed(partitions, topic, data.index)
            for topic in request.topic_data
            for data in topic.partition_data
        )

    def run(
        self,
        checks: Sequence[BatchCheck],
        expansion: Expansion,
        done: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Runs the checks of one request in one job, one after the other."""

        def work() -> None:
            for check in checks:
                check.run(expansion)

        self._jobs.submit(work, lambda _: done(), failed)

    def stop(self) -> None:
        """Neither `done` nor `failed` is called after this."""
        self._jobs.stop()


def _is_recompressed(partitions: Partitions, topic: TopicProduceData, index: int) -> bool:
    try:
        return bool(partitions.leader(topic.name, topic.topic_id, index).partition.settings.compression)
    except ApiError:
        return False
