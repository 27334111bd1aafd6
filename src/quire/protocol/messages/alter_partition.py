"""AlterPartition, API 56: versions 2 to 3, flexible. Answered by controllers; needs ClusterAction."""

from quire.protocol.schema import Message, Struct, array, int8, int16, int32, int64, uuid


class BrokerState(Struct):
    broker_id: int = int32("3+")
    broker_epoch: int = int64("3+", default=-1)


class AlterPartitionRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    leader_epoch: int = int32("0+")
    new_isr: list[int] = array(int32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, "3+")
    leader_recovery_state: int = int8("1+")
    partition_epoch: int = int32("0+")


class AlterPartitionRequestTopicData(Struct):
    topic_id: bytes = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData] = array(AlterPartitionRequestPartitionData, "0+")


class AlterPartitionRequest(Message):
    API_KEY = 56
    VERSIONS = (2, 3)
    FLEXIBLE = 0

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    topics: list[AlterPartitionRequestTopicData] = array(AlterPartitionRequestTopicData, "0+")


class AlterPartitionResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    isr: list[int] = array(int32, "0+")
    leader_recovery_state: int = int8("1+", ignorable=True)
    partition_epoch: int = int32("0+")


class AlterPartitionResponseTopicData(Struct):
    topic_id: bytes = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData] = array(AlterPartitionResponsePartitionData, "0+")


class AlterPartitionResponse(Message):
    API_KEY = 56
    VERSIONS = (2, 3)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    topics: list[AlterPartitionResponseTopicData] = array(AlterPartitionResponseTopicData, "0+")
