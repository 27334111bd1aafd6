"""ListOffsets by time: `Partition.find_offset`, with long searches in jobs (see `quire.storage.time_lookup`).

Only the leader knows what is committed, so a search that another leadership overtakes is refused.
"""

from collections.abc import Callable

from quire.node.partitions.hosted import HostedPartitions
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.replication.partition import FoundOffset, Partition
from quire.storage.scanning.batch_scan import DamagedBatchError
from quire.storage.time_lookup.time_search import LongSearchError, TimeSearch

OffsetSearchResult = FoundOffset | ApiError | None
"""The offset, None if no record matches, or the error that ended the search."""


def find_offset(
    hosted: HostedPartitions, partition: Partition, timestamp: int, committed_only: bool
) -> FoundOffset | Pending[OffsetSearchResult] | None:
    try:
        return partition.find_offset(timestamp, committed_only)
    except LongSearchError as error:
        later: Pending[OffsetSearchResult] = Pending()
        _search(hosted, partition, timestamp, committed_only, error.search, later.complete_once)
        return later


def _search(
    hosted: HostedPartitions,
    partition: Partition,
    timestamp: int,
    committed_only: bool,
    search: TimeSearch,
    complete: Callable[[OffsetSearchResult], object],
) -> None:
    leader = partition.leader

    def searched(search: TimeSearch | None) -> None:
        if partition not in hosted.directory_of:
            complete(hosted.why_missing(partition.topic, None, partition.index))
            return
        if partition.leader is not leader:
            complete(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} has changed its leader: try again"))
            return
        try:
            complete(partition.find_offset(timestamp, committed_only, search))
        except LongSearchError as error:
            _search(hosted, partition, timestamp, committed_only, error.search, complete)
        except ApiError as error:
            complete(error)

    def refuse(error: ApiError) -> None:
        complete(partition.damage_error(error) if isinstance(error, DamagedBatchError) else error)

    hosted.directory_of[partition].searcher.search(search, searched, refuse)
