"""An operator who moves replicas between brokers: other brokers, more or fewer of them, and sometimes back.

Most reassignments take longer than the pauses between faults, so all parts of them meet crashes. Some are cancelled or
replaced by another one before they are complete. At the end each must be complete, and the partition have replicas that
somebody asked for.
"""

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quire.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from simulator.clients.client import FIRST_METADATA_WITH_TOPIC_IDS, Scene, SimClient
from simulator.clients.wire import Lost
from simulator.violation import Violation

COMPLETES = "every reassignment is complete in the end, and the replicas are those that were asked for"
PAUSE_MS = 4000.0
MOST_AT_ONCE = 3
TIMEOUT_MS = 3000
CANCEL_CHANCE = 0.25

Name = tuple[str, int]
"""Topic and partition."""


class Reassigner(SimClient):
    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._asked: dict[tuple[bytes, int], dict[frozenset[int], None]] = {}
        """Per topic id and partition: what it had, and may have."""
        self._cancelled: dict[Name, None] = {}

    async def run(self) -> None:
        while not self.scene.finishing:
            await self.scene.sleep(self.random.between(0.0, PAUSE_MS))
            try:
                await self._do_something()
            except Lost:
                await self.back_off()
        while not await self._is_done():
            await self.back_off()
        self.close()

    async def _do_something(self) -> None:
        await self._note_completed()
        metadata: MetadataResponse = await self.ask(
            MetadataRequest(topics=None, allow_auto_topic_creation=False), at_least=FIRST_METADATA_WITH_TOPIC_IDS
        )
        partitions = {
            (topic.name or "", each.partition_index): (bytes(topic.topic_id), frozenset(each.replica_nodes))
            for topic in metadata.topics
            for each in topic.partitions
            if (topic.name, each.partition_index) not in self.scene.damaged
        }
        brokers = sorted(broker.node_id for broker in metadata.brokers)
        if not partitions or not brokers:
            return
        wanted: dict[Name, list[int] | None] = {}
        for _ in range(1 + self.random.below(MOST_AT_ONCE)):
            moving = [each for each in self.scene.moving if each in partitions]
            if moving and self.random.chance(CANCEL_CHANCE):
                wanted[self.random.choice(moving)] = None
            else:
                wanted[self.random.choice(list(partitions))] = self._replicas(brokers)
        for name, target in wanted.items():
            topic_id, present = partitions[name]
            asked = self._asked.setdefault((topic_id, name[1]), {present: None})
            if target is None:
                self._cancelled[name] = None
            else:
                asked[frozenset(target)] = None
        await self._reassign(wanted)

    def _replicas(self, brokers: list[int]) -> list[int]:
        left = list(brokers)
        count = min(len(left), 1 + self.random.below(self.scene.most_replicas + 1), self.scene.most_replicas)
        return [left.pop(self.random.below(len(left))) for _ in range(count)]

    async def _reassign(self, wanted: dict[Name, list[int] | None]) -> None:
        """A late copy of the request may start a reassignment again, also of another topic with the same name."""
        by_topic: dict[str, ReassignableTopic] = {}
        for (topic, index), replicas in wanted.items():
            self.scene.will_move(topic, index)
            entry = by_topic.setdefault(topic, ReassignableTopic(name=topic))
            entry.partitions.append(ReassignablePartition(partition_index=index, replicas=replicas))
        self.scene.tell(f"{self.name}: " + ", ".join(f"{name[0]}-{name[1]} to {to}" for name, to in wanted.items()))
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=list(by_topic.values()))
        response = await self.ask(request)
        if self.expect(response.error_code, "AlterPartitionReassignments", *self.excuses) is not ErrorCode.NONE:
            return
        for results in response.responses:
            for each in results.partitions:
                name = results.name, each.partition_index
                refusals = () if wanted[name] is not None else _REFUSED_TO_CANCEL
                what = f"the reassignment of {results.name}-{each.partition_index} to {wanted[name]}"
                self.expect(each.error_code, f"{what}: {each.error_message}", *refusals, *self.excuses)

    async def _note_completed(self) -> None:
        response = await self.ask(ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS))
        if self.expect(response.error_code, "ListPartitionReassignments", *self.excuses) is ErrorCode.NONE:
            for topic in response.topics:
                for each in topic.partitions:
                    self.scene.will_move(topic.name, each.partition_index)

    async def _is_done(self) -> bool:
        """Changes have ended, and all nodes work."""
        try:
            response = await self.ask(ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS))
            error = self.expect(response.error_code, "ListPartitionReassignments", *self.excuses)
            if error is not ErrorCode.NONE or response.topics:
                return False
            metadata: MetadataResponse = await self.ask(
                MetadataRequest(topics=None, allow_auto_topic_creation=False), at_least=FIRST_METADATA_WITH_TOPIC_IDS
            )
        except Lost:
            return False
        for topic in metadata.topics:
            for each in topic.partitions:
                self._check(topic.name or "", bytes(topic.topic_id), each.partition_index, each.replica_nodes)
        return True

    def _check(self, topic: str, topic_id: bytes, index: int, replicas: list[int]) -> None:
        """What a cancellation leaves may be between two reassignments that replaced each other."""
        asked = self._asked.get((topic_id, index))
        if asked is not None and (topic, index) not in self._cancelled and frozenset(replicas) not in asked:
            told = " or ".join(str(sorted(each)) for each in asked)
            raise Violation(COMPLETES, f"{topic}-{index} has replicas {replicas}, not {told}")


_REFUSED_TO_CANCEL = (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
