"""The APIs that this node serves: one file per API, each with

    handle(node, context, request) -> the response, or a Pending or Work (see `quire.node.slices`) that ends with it
    refuse(request, error) -> a response with `error` in every place that the API has for one; for requests that the
                              controller decides it is the one of `quire.controller.refusals`

A handler's docstring says what changed in which version. `SERVED` is what ApiVersions advertises, so an API that is
missing there does not exist for clients. A handler's module is imported when its first request arrives.
"""

from typing import NamedTuple


class Served(NamedTuple):
    """The versions that a handler understands, and the listeners that serve it."""

    oldest: int
    newest: int
    on_broker: bool = True
    on_controller: bool = False
    changes: bool = False
    """Whether a request changes what other clients see. If so, it is handled even if its client has disconnected.

    JoinGroup is not such a request: if it is dropped, the group does not wait for a member that has disconnected.
    """
    advertised_from: int | None = None
    """The oldest version that ApiVersions advertises, if the node refuses that one: librdkafka requires Produce 0."""
    controller_module: str | None = None
    """The handler on controller listeners, if it is another one than on broker listeners."""
    controller_oldest: int | None = None
    """The oldest version on controller listeners, if it is another one than on broker listeners."""

    @property
    def only_nodes_send_it_to_controllers(self) -> bool:
        """On controller listeners; the same API may be for clients on those of brokers."""
        return self.on_controller and (not self.on_broker or self.controller_module is not None)

    def oldest_on(self, *, controller: bool) -> int:
        return self.oldest if self.controller_oldest is None or not controller else self.controller_oldest


SERVED: dict[str, Served] = {
    "Produce": Served(3, 13, advertised_from=0, changes=True),
    # Before version 12, a follower does not say the epoch of its last record.
    "Fetch": Served(4, 18, on_controller=True, controller_module="metadata_fetch", controller_oldest=12),
    "ListOffsets": Served(1, 11),
    "Metadata": Served(0, 13),
    "OffsetCommit": Served(2, 10, changes=True),
    "OffsetFetch": Served(1, 10),
    "FindCoordinator": Served(0, 6),
    "JoinGroup": Served(0, 9),
    "Heartbeat": Served(0, 4),
    "LeaveGroup": Served(0, 5, changes=True),
    "SyncGroup": Served(0, 5, changes=True),
    "DescribeGroups": Served(0, 6),
    "ListGroups": Served(0, 5),
    "ApiVersions": Served(0, 4, on_controller=True),
    "CreateTopics": Served(2, 7, on_controller=True, changes=True),
    "DeleteTopics": Served(1, 6, on_controller=True, changes=True),
    "DeleteRecords": Served(0, 2, changes=True),
    "InitProducerId": Served(0, 5, changes=True),
    "OffsetForLeaderEpoch": Served(2, 4),
    "AddPartitionsToTxn": Served(0, 5, changes=True),
    "AddOffsetsToTxn": Served(0, 4, changes=True),
    "EndTxn": Served(0, 5, changes=True),
    "WriteTxnMarkers": Served(1, 2, changes=True),
    "TxnOffsetCommit": Served(0, 5, changes=True),
    "DescribeConfigs": Served(1, 4, on_controller=True),
    "AlterConfigs": Served(0, 2, on_controller=True, changes=True),
    "AlterReplicaLogDirs": Served(1, 2, changes=True),
    "DescribeLogDirs": Served(1, 5),
    "CreatePartitions": Served(0, 3, on_controller=True, changes=True),
    "DeleteGroups": Served(0, 2, changes=True),
    "ElectLeaders": Served(0, 2, on_controller=True, changes=True),
    "IncrementalAlterConfigs": Served(0, 1, on_controller=True, changes=True),
    "AlterPartitionReassignments": Served(0, 1, on_controller=True, changes=True),
    "ListPartitionReassignments": Served(0, 0, on_controller=True),
    "OffsetDelete": Served(0, 0, changes=True),
    "Vote": Served(0, 2, on_broker=False, on_controller=True, changes=True),
    "BeginQuorumEpoch": Served(0, 1, on_broker=False, on_controller=True, changes=True),
    "EndQuorumEpoch": Served(0, 1, on_broker=False, on_controller=True, changes=True),
    "DescribeQuorum": Served(0, 2, on_controller=True),
    "FetchSnapshot": Served(0, 1, on_broker=False, on_controller=True),
    "AlterPartition": Served(2, 3, on_broker=False, on_controller=True, changes=True),
    "UpdateFeatures": Served(0, 2, on_controller=True, changes=True),
    "Envelope": Served(0, 0, on_broker=False, on_controller=True, changes=True),
    "DescribeCluster": Served(0, 2, on_controller=True),
    "DescribeProducers": Served(0, 0),
    "BrokerRegistration": Served(0, 4, on_broker=False, on_controller=True, changes=True),
    "BrokerHeartbeat": Served(0, 2, on_broker=False, on_controller=True, changes=True),
    "UnregisterBroker": Served(0, 0, on_controller=True, changes=True),
    "DescribeTransactions": Served(0, 0),
    "ListTransactions": Served(0, 2),
    "AllocateProducerIds": Served(0, 0, on_broker=False, on_controller=True, changes=True),
    "ConsumerGroupHeartbeat": Served(0, 1, changes=True),
    "ConsumerGroupDescribe": Served(0, 1),
    "ControllerRegistration": Served(0, 0, on_broker=False, on_controller=True, changes=True),
    "AssignReplicasToDirs": Served(0, 0, on_broker=False, on_controller=True, changes=True),
    "ListConfigResources": Served(0, 1),
    "DescribeTopicPartitions": Served(0, 0),
    "AddRaftVoter": Served(0, 1, on_controller=True, changes=True),
    "RemoveRaftVoter": Served(0, 0, on_controller=True, changes=True),
    "UpdateRaftVoter": Served(0, 0, on_broker=False, on_controller=True, changes=True),
}
