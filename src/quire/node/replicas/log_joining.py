"""Where a follower continues when the leader has nothing at the end of its log (OFFSET_OUT_OF_RANGE).

    the leader's log ends before this one    truncate to its end, even if that is before the start of this log. The
                                             epochs show where the logs really diverge with the next fetch.
    the leader's log starts after this one   the records in between are deleted: start over at the leader's start
    neither                                  the leader's log has changed meanwhile: fetch again, after a pause

The first is possible only after an unclean election, or in a log without epochs.
"""

import logging
from typing import TYPE_CHECKING

from quire.client.link import CallResult
from quire.node.node_links import NodeLinks
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from quire.replication.follower_role import FollowerRole
from quire.replication.partition import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from quire.storage.scanning.batch_scan import DamagedBatchError

if TYPE_CHECKING:
    from quire.node.node import Node

log = logging.getLogger("quire.replicas")

TIMEOUT_MS = 5_000


class LogJoining:
    __slots__ = ("_leader_id", "_links", "_node")

    def __init__(self, node: "Node", leader_id: int, links: NodeLinks[tuple[int, str]]) -> None:
        self._node = node
        self._leader_id = leader_id
        self._links = links

    def join(self, follower: FollowerRole) -> Pending[bool]:
        """Makes the end of the log one that the leader has; False if that has to be tried again."""
        joined: Pending[bool] = Pending()

        def ended(leader_end: int | None) -> None:
            if leader_end is None or not follower.is_active:
                joined.complete(False)
            elif leader_end < follower.log.end_offset:
                joined.complete(self._truncate(follower, leader_end))
            else:
                self._ask(follower, EARLIEST_TIMESTAMP).when_done(started)

        def started(leader_start: int | None) -> None:
            if leader_start is None or not follower.is_active:
                joined.complete(False)
            else:
                starts_later = leader_start > follower.log.end_offset
                joined.complete(starts_later and self._start_over(follower, leader_start))

        self._ask(follower, LATEST_TIMESTAMP).when_done(ended)
        return joined

    def _truncate(self, follower: FollowerRole, leader_end: int) -> bool:
        partition = follower.partition
        log.warning(
            "replica truncated partition=%s end=%d leader_end=%d", partition, partition.log.end_offset, leader_end
        )
        try:
            self._node.partitions.truncate(partition, leader_end)
        except DamagedBatchError as damage:
            log.warning("%s cannot be truncated yet: %s", partition, partition.damage_error(damage).message)
            return False
        except ApiError as error:
            log.error("%s cannot be truncated: %s", partition, error.message)
            return False
        return True

    def _start_over(self, follower: FollowerRole, leader_start: int) -> bool:
        partition = follower.partition
        log.info("replica starts over partition=%s end=%d start=%d", partition, partition.log.end_offset, leader_start)
        try:
            self._node.partitions.start_over(partition, leader_start)
        except ApiError as error:
            log.error("%s cannot start over: %s", partition, error.message)
            return False
        return True

    def _ask(self, follower: FollowerRole, timestamp: int) -> Pending[int | None]:
        """The end (of the whole log, not only of what is committed) or the start of the leader's log."""
        node, partition = self._node, follower.partition
        offset: Pending[int | None] = Pending()

        def answered(result: CallResult) -> None:
            offset.complete(_offset_in(result))

        request = ListOffsetsRequest(
            replica_id=node.node_id,
            topics=[
                ListOffsetsTopic(
                    name=partition.topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=partition.index,
                            current_leader_epoch=follower.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
            ],
        )
        address = node.broker_links.address_of(self._leader_id)
        if address is None:
            offset.complete(None)
            return offset
        link = self._links.link((self._leader_id, "offsets"), address, f"quire-{node.node_id}-offsets")
        link.call(request, TIMEOUT_MS).when_done(answered)
        return offset


def _offset_in(result: CallResult) -> int | None:
    if not isinstance(result, ListOffsetsResponse):
        return None
    offsets = [
        partition.offset
        for topic in result.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE and partition.offset >= 0
    ]
    return offsets[0] if len(offsets) == 1 else None
