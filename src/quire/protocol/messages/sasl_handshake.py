"""SaslHandshake, API 17: versions 0 to 1, never flexible. Answered by brokers and controllers."""

from quire.protocol.schema import Message, array, int16, string


class SaslHandshakeRequest(Message):
    API_KEY = 17
    VERSIONS = (0, 1)
    FLEXIBLE = None

    mechanism: str = string("0+")


class SaslHandshakeResponse(Message):
    API_KEY = 17
    VERSIONS = (0, 1)
    FLEXIBLE = None

    error_code: int = int16("0+")
    mechanisms: list[str] = array(string, "0+")
