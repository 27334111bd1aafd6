"""AddOffsetsToTxn, API 25: versions 0 to 4, flexible from 3. Answered by brokers."""

from quire.protocol.schema import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message):
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE = 3

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    group_id: str = string("0+")


class AddOffsetsToTxnResponse(Message):
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE = 3

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
