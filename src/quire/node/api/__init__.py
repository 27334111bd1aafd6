"""What this node answers: one file per API, each with

    handle(node, context, request) -> response, or a Pending that becomes one, or work in slices that ends with one
    refuse(request, error) -> response that carries `error` wherever the API has a place for it

This table is what ApiVersions advertises, so an API that is not here does not exist for clients. A handler's module is
imported when its first request comes.
"""

from typing import NamedTuple


class Served(NamedTuple):
    """The versions a handler understands, and the listeners that offer it."""

    oldest: int
    newest: int
    on_broker: bool = True
    on_controller: bool = False
    changes: bool = False
    """Whether a request changes what others see, and so is handled even if its client has gone before its turn came.

    A join changes something only for the one that joins: without it, the group does not wait for a member that is gone.
    """
    advertised_from: int | None = None
    """Advertised from here although older requests are refused: librdkafka insists on Produce 0."""


SERVED: dict[str, Served] = {
    "Produce": Served(3, 13, advertised_from=0, changes=True),
    "Fetch": Served(4, 18),
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
    "DescribeLogDirs": Served(1, 5),
    "CreatePartitions": Served(0, 3, on_controller=True, changes=True),
    "DeleteGroups": Served(0, 2, changes=True),
    "IncrementalAlterConfigs": Served(0, 1, on_controller=True, changes=True),
    "OffsetDelete": Served(0, 0, changes=True),
    "DescribeQuorum": Served(0, 2, on_controller=True),
    "UpdateFeatures": Served(0, 2, on_controller=True, changes=True),
    "DescribeCluster": Served(0, 2, on_controller=True),
    "DescribeProducers": Served(0, 0),
    "DescribeTransactions": Served(0, 0),
    "ListTransactions": Served(0, 2),
    "ConsumerGroupHeartbeat": Served(0, 1, changes=True),
    "ConsumerGroupDescribe": Served(0, 1),
    "ListConfigResources": Served(0, 1),
    "DescribeTopicPartitions": Served(0, 0),
}
