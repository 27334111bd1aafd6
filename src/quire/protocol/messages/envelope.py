"""Envelope, API 58: version 0, flexible. Answered by controllers; needs ClusterAction."""

from quire.protocol.schema import Message, binary, int16


class EnvelopeRequest(Message):
    API_KEY = 58
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    request_data: bytes = binary("0+")
    request_principal: bytes | None = binary("0+", nullable="0+")
    client_host_address: bytes = binary("0+")


class EnvelopeResponse(Message):
    API_KEY = 58
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    response_data: bytes | None = binary("0+", nullable="0+", default=None)
    error_code: int = int16("0+")
