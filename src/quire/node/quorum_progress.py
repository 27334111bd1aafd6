"""How far the metadata log is committed, as its leader says in response to DescribeQuorum.

Kafka's responses to changes do not say at which offset of the metadata log the change is. A node that wants to see a
change in its own image asks the leader afterwards: everything that was answered is below the high watermark. Quire's
controllers and Apache Kafka's send the same response, but only Quire's make sure that they still lead (see
`quire.raft.leadership_checks`).
"""

from quire.protocol.errors import ErrorCode
from quire.protocol.internal_topics import CLUSTER_METADATA
from quire.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)

HIGH_WATERMARK = DescribeQuorumRequest(
    topics=[
        DescribeQuorumRequestTopicData(
            topic_name=CLUSTER_METADATA, partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
        )
    ]
)
"""The request."""


def high_watermark(response: DescribeQuorumResponse) -> int | None:
    """Everything below is committed; None if the node that answered does not lead the quorum, or does not know yet."""
    if response.error_code != ErrorCode.NONE:
        return None
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.NONE and partition.high_watermark >= 0:
                return partition.high_watermark
    return None
