"""UnregisterBroker, API 64: version 0, flexible. Answered by brokers and controllers."""

from quire.protocol.schema import Message, int16, int32, string


class UnregisterBrokerRequest(Message):
    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    broker_id: int = int32("0+")


class UnregisterBrokerResponse(Message):
    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
