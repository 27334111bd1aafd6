"""RenewDelegationToken, API 39: versions 1 to 2, flexible from 2. Answered by brokers and controllers."""

from quire.protocol.schema import Message, binary, int16, int32, int64


class RenewDelegationTokenRequest(Message):
    API_KEY = 39
    VERSIONS = (1, 2)
    FLEXIBLE = 2

    hmac: bytes = binary("0+")
    renew_period_ms: int = int64("0+")


class RenewDelegationTokenResponse(Message):
    API_KEY = 39
    VERSIONS = (1, 2)
    FLEXIBLE = 2

    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
