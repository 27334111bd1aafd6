"""SaslAuthenticate, API 36: versions 0 to 2, flexible from 2. Answered by brokers and controllers."""

from quire.protocol.schema import Message, binary, int16, int64, string


class SaslAuthenticateRequest(Message):
    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    auth_bytes: bytes = binary("0+")


class SaslAuthenticateResponse(Message):
    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = binary("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)
