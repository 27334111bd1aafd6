"""GetTelemetrySubscriptions, API 71: version 0, flexible. Answered by brokers."""

from quire.protocol.schema import Message, array, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Message):
    API_KEY = 71
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    client_instance_id: bytes = uuid("0+")


class GetTelemetrySubscriptionsResponse(Message):
    API_KEY = 71
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    client_instance_id: bytes = uuid("0+")
    subscription_id: int = int32("0+")
    accepted_compression_types: list[int] = array(int8, "0+")
    push_interval_ms: int = int32("0+")
    telemetry_max_bytes: int = int32("0+")
    delta_temporality: bool = boolean("0+")
    requested_metrics: list[str] = array(string, "0+")
