"""Who sent a request, as a broker passes it to the controller inside an Envelope."""

from quire.protocol.schema import Message, boolean, string


class DefaultPrincipalData(Message):
    API_KEY = -1
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    type: str = string("0+")
    name: str = string("0+")
    token_authenticated: bool = boolean("0+")
