"""What classic consumers put into the opaque bytes of JoinGroup and SyncGroup: subscriptions and assignments.

Each is preceded by its version as an int16.
"""

from quire.protocol.schema import Message, Struct, array, binary, int32, string


class ConsumerProtocolSubscriptionTopicPartition(Struct):
    topic: str = string("1+")
    partitions: list[int] = array(int32, "1+")


class ConsumerProtocolSubscription(Message):
    API_KEY = -1
    VERSIONS = (0, 3)
    FLEXIBLE = None

    topics: list[str] = array(string, "0+")
    user_data: bytes | None = binary("0+", nullable="0+", default=None)
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = array(
        ConsumerProtocolSubscriptionTopicPartition, "1+", ignorable=True
    )
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignmentTopicPartition(Struct):
    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerProtocolAssignment(Message):
    API_KEY = -1
    VERSIONS = (0, 3)
    FLEXIBLE = None

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = array(
        ConsumerProtocolAssignmentTopicPartition, "0+"
    )
    user_data: bytes | None = binary("0+", nullable="0+", default=None)
