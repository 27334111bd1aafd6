"""How the epochs of a producer grow, and what happens when they are exhausted.

An epoch has 15 bits. No producer gets the highest epoch: it is for the marker that ends the last transaction of a
producer id, so that this marker, too, has a later epoch than the records before it. Then the producer continues with a
new producer id and epoch 0.
"""

from quire.protocol.errors import ApiError, ErrorCode

NO_PRODUCER_ID = -1
NO_EPOCH = -1
HIGHEST_EPOCH = 32767


class NeedsProducerId(ApiError):  # noqa: N818 - a request for an id; an error only if there is none
    """An operation needs a new producer id and was given none. It has changed nothing.

    The caller gets an id and runs the operation again with it. An id that the operation does not use in the end is
    lost, which does no harm. If there is no id, the client gets this error and retries.
    """

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "no producer id is available: try again")


def is_exhausted(epoch: int) -> bool:
    """Whether the next epoch must not go to a producer."""
    return epoch >= HIGHEST_EPOCH - 1


def require_producer_id(new_producer_id: int) -> int:
    """The new producer id; NeedsProducerId if the operation was given none."""
    if new_producer_id == NO_PRODUCER_ID:
        raise NeedsProducerId
    return new_producer_id


def fenced(message: str, *, is_old_version: bool) -> ApiError:
    """The error for a producer that another one has replaced. Older clients know it under an older name."""
    code = ErrorCode.INVALID_PRODUCER_EPOCH if is_old_version else ErrorCode.PRODUCER_FENCED
    return ApiError(code, message)
