"""ListOffsets by time: `Partition.find_offset`, with what takes long in jobs.

That is a long search (see `quire.storage.time_lookup`), or the rebuilding of a wrong index. Only the leader knows what
is committed, so a search that another leadership overtakes is refused.
"""

from collections.abc import Callable

from quire.node.partitions.hosted import HostedPartitions
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.replication.partition import FoundOffset, Partition
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.scanning.range_check import NotCheckedError
from quire.storage.time_lookup.time_search import LongSearchError, TimeSearch

OffsetSearchResult = FoundOffset | ApiError | None
"""The offset, None if no record matches, or the error that ended the search."""


def find_offset(
    hosted: HostedPartitions, partition: Partition, timestamp: int, committed_only: bool
) -> FoundOffset | Pending[OffsetSearchResult] | None:
    try:
        return partition.find_offset(timestamp, committed_only)
    except (LongSearchError, NotCheckedError) as error:
        later: Pending[OffsetSearchResult] = Pending()
        _Search(hosted, partition, timestamp, committed_only, later.complete_once).needs(error)
        return later


class _Search:
    """A search that waits for jobs, one after the other."""

    def __init__(
        self,
        hosted: HostedPartitions,
        partition: Partition,
        timestamp: int,
        committed_only: bool,
        complete: Callable[[OffsetSearchResult], object],
    ) -> None:
        self._hosted = hosted
        self._partition = partition
        self._leader = partition.leader
        self._timestamp = timestamp
        self._committed_only = committed_only
        self._complete = complete
        self._searched: TimeSearch | None = None
        self._checked: set[str] = set()
        """Each segment may need one check."""

    def needs(self, error: LongSearchError | NotCheckedError) -> None:
        directory = self._hosted.directory_of[self._partition]
        if isinstance(error, LongSearchError):
            directory.searcher.search(error.search, self._continue, self._refuse)
        elif (subject := error.check.subject) not in self._checked:
            self._checked.add(subject)
            directory.checker.check(error.check, lambda: self._continue(self._searched))
        else:
            self._complete(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._partition} has wrong indexes"))

    def _continue(self, searched: TimeSearch | None) -> None:
        self._searched = searched
        partition = self._partition
        if partition not in self._hosted.directory_of:
            self._complete(self._hosted.why_missing(partition.topic, None, partition.index))
            return
        if partition.leader is not self._leader:
            self._complete(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} has changed its leader: try again"))
            return
        try:
            self._complete(partition.find_offset(self._timestamp, self._committed_only, searched))
        except (LongSearchError, NotCheckedError) as error:
            self.needs(error)
        except ApiError as error:
            self._complete(error)

    def _refuse(self, error: ApiError) -> None:
        self._complete(self._partition.damage_error(error) if isinstance(error, DamagedBatchError) else error)
