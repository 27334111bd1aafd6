"""Partitions: each leader epoch has one leader, and no high watermark is beyond the end of its log."""

from collections.abc import Iterable

from quire.replication.partition import Partition
from simulator.violation import Violation

ONE_LEADER = "a leader epoch of a partition has one leader"
WATERMARK = "a high watermark is at most the end of the log"


class PartitionCheck:
    def __init__(self) -> None:
        self._leaders: dict[tuple[bytes, int, int], str] = {}

    def check(self, node: str, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if partition.leader is not None:
                self.leads(node, partition, partition.leader.leader_epoch)
            if partition.high_watermark > partition.log.end_offset:
                raise Violation(
                    WATERMARK,
                    f"{partition} of {node} has {partition.high_watermark}, and ends at {partition.log.end_offset}",
                )

    def leads(self, node: str, partition: Partition, leader_epoch: int) -> None:
        first = self._leaders.setdefault((partition.topic_id, partition.index, leader_epoch), node)
        if first != node:
            raise Violation(ONE_LEADER, f"{partition} has {first} and {node} in epoch {leader_epoch}")
