"""What can go wrong for a caller of the client, besides the errors a broker answers with (`ApiError`)."""

from quire.protocol.errors import ApiError


class ClientError(Exception):
    """Something the caller can act on; the text is one sentence that says what happened."""


class UnreachableError(ClientError):
    """No connection came about: nobody listens there, or the name does not resolve."""


class DisconnectedError(ClientError):
    """The connection went away while the answer was still to come, so nobody knows whether the request was done."""


class TimedOutError(ClientError):
    """The answer did not come in time."""


class UnsupportedError(ClientError):
    """The broker does not speak a version of the request that the client does."""


def passes(error: Exception) -> bool:
    """Whether the same may well be possible a little later."""
    if isinstance(error, ApiError):
        return error.code.retriable
    return isinstance(error, ClientError) and not isinstance(error, UnsupportedError)
