"""PushTelemetry, API 72: version 0, flexible. Answered by brokers."""

from quire.protocol.schema import Message, binary, boolean, int8, int16, int32, uuid


class PushTelemetryRequest(Message):
    API_KEY = 72
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    client_instance_id: bytes = uuid("0+")
    subscription_id: int = int32("0+")
    terminating: bool = boolean("0+")
    compression_type: int = int8("0+")
    metrics: bytes = binary("0+")


class PushTelemetryResponse(Message):
    API_KEY = 72
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
