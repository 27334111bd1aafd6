"""AllocateProducerIds, API 67: version 0, flexible. Answered by controllers; needs ClusterAction."""

from quire.protocol.schema import Message, int16, int32, int64


class AllocateProducerIdsRequest(Message):
    API_KEY = 67
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)


class AllocateProducerIdsResponse(Message):
    API_KEY = 67
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id_start: int = int64("0+")
    producer_id_len: int = int32("0+")
