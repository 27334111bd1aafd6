"""EndTxn, API 26: versions 0 to 5, flexible from 3. Answered by brokers."""

from quire.protocol.schema import Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message):
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE = 3

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    committed: bool = boolean("0+")


class EndTxnResponse(Message):
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE = 3

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
