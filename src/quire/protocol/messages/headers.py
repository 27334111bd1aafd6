"""What stands before every request and response.

RequestHeader version 1 or 2 and ResponseHeader version 0 or 1: `quire.protocol.apis` says which.
"""

from quire.protocol.schema import Header, int16, int32, string


class RequestHeader(Header):
    API_KEY = -1
    VERSIONS = (1, 2)
    FLEXIBLE = 2

    request_api_key: int = int16("0+")
    request_api_version: int = int16("0+")
    correlation_id: int = int32("0+")
    client_id: str | None = string("1+", nullable="1+", legacy=True)


class ResponseHeader(Header):
    API_KEY = -1
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    correlation_id: int = int32("0+")
