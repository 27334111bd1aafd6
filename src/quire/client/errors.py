"""Errors of the client, besides those in a broker's responses (`ApiError`)."""

from quire.protocol.errors import ApiError


class ClientError(Exception):
    """An error that the caller can act on; the text is one sentence that says what happened."""


class UnreachableError(ClientError):
    """No connection could be opened: no broker listens at the address, or the name does not resolve."""


class DisconnectedError(ClientError):
    """The connection was lost before the response came, so it is unknown whether the request was carried out."""


class TimedOutError(ClientError):
    """The response did not come in time."""


class UnsupportedError(ClientError):
    """The broker supports no version of the request that the client supports."""


def passes(error: Exception) -> bool:
    """Whether a retry may succeed."""
    if isinstance(error, ApiError):
        return error.code.retriable
    return isinstance(error, ClientError) and not isinstance(error, UnsupportedError)
