"""Checks of produced batches that take too long for the event loop, in jobs.

Usually all batches of a request are checked on the way. Where that would take long (see `BatchCheck`), the request
waits, and is then handled as if it had come only now: whether this node leads the partition, what its producer has
sent before and which transaction is open is all decided after the wait, in one go. Nothing else waits for it: appends
to the same partition that come meanwhile, from other clients, are before it. The client's own next request is not read
before.
"""

from collections.abc import Callable, Sequence

from quire.protocol.messages.produce import TopicProduceData
from quire.protocol.records.batch import CODEC_MASK, CODEC_POSITION
from quire.protocol.records.expansion import Expansion
from quire.replication.batch_check import AT_ONCE_BYTES, BatchCheck
from quire.replication.partition import Partition
from quire.seams import Jobs
from quire.storage.few_jobs import FewJobs

_JOBS_AT_ONCE = 2
_SMALL_PART = 256
"""Plain batches of so small a part of what may be done at once take no longer than that, whatever is done with them."""

Checks = dict[Partition, BatchCheck]
"""Of one request, by where its batches go."""


def need_no_checks(topics: Sequence[TopicProduceData], at_once_bytes: int) -> bool:
    """Whether a request is small and plain, as most are: `Partition.append` then checks it on the way."""
    left_bytes = at_once_bytes // _SMALL_PART
    for topic in topics:
        for data in topic.partition_data:
            records = data.records
            if records is not None:
                left_bytes -= len(records)
                if left_bytes < 0 or (len(records) > CODEC_POSITION and records[CODEC_POSITION] & CODEC_MASK):
                    return False
    return True


class BatchChecks:
    __slots__ = ("_jobs", "at_once_bytes")

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = FewJobs(jobs, _JOBS_AT_ONCE)
        self.at_once_bytes = AT_ONCE_BYTES
        """What may be decompressed for one request without a job; the simulator has it lower."""

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
