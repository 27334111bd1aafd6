"""Checks of produced batches that take too long for the event loop, in jobs.

Usually all batches of a request are checked on the way. Where that would take long (see `BatchCheck`), the request
waits, and is then handled as if it had come only now: whether this node leads the partition, what its producer has
sent before and which transaction is open is all decided after the wait, in one go. Nothing else waits for it: appends
to the same partition that come meanwhile, from other clients, are before it. The client's own next request is not read
before.
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
"""Of one request, by where its batches go."""


class BatchChecks:
    __slots__ = ("_jobs", "at_once_bytes", "plain_bytes", "small_bytes")

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = FewJobs(jobs, _JOBS_AT_ONCE, computes=True)
        self.at_once_bytes = 0
        """What may be decompressed for one request without a job."""
        self.small_bytes = 0
        """Plain batches of no more than this take no longer, whatever is done with them."""
        self.plain_bytes = 0
        """The same if nothing is done with them, other than to check them."""
        self.bound(AT_ONCE_BYTES)

    def bound(self, at_once_bytes: int) -> None:
        """What is done without a job from now on; the simulator has it lower than usual."""
        self.at_once_bytes = at_once_bytes
        self.small_bytes = at_once_bytes // _SMALL_PART
        self.plain_bytes = at_once_bytes * PLAIN_BYTES_PER_COST

    def unneeded(self, partitions: Partitions, request: ProduceRequest) -> bool:
        """Whether a request is plain and not huge, as most are: `Partition.append` then checks it on the way."""
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
            # While a transaction's coordinator is asked, the topic's settings may change.
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
        """Runs the checks of one request, one after the other."""

        def work() -> None:
            for check in checks:
                check.run(expansion)

        self._jobs.submit(work, lambda _: done(), failed)

    def stop(self) -> None:
        """Those who wait are not called any more."""
        self._jobs.stop()


def _is_recompressed(partitions: Partitions, topic: TopicProduceData, index: int) -> bool:
    try:
        return bool(partitions.leader(topic.name, topic.topic_id, index).settings.compression)
    except ApiError:
        return False
