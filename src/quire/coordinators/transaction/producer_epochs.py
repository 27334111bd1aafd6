"""How a producer's epochs rise, and what happens when they are used up.

An epoch has 15 bits. The highest is never given to a producer: it is for the marker that ends the last transaction of a
producer id, so that also that one can be told from what came before. Then the producer goes on with a new id, epoch 0.
"""

from quire.protocol.errors import ApiError, ErrorCode

NO_PRODUCER_ID = -1
NO_EPOCH = -1
HIGHEST_EPOCH = 32767


class NeedsProducerId(ApiError):  # noqa: N818 - it is a request for something, and an error only to who cannot give it
    """An operation needs a new producer id and was given none; it has changed nothing.

    Whoever runs the operation gets an id and runs it again with that; an id that is not used in the end is lost, which
    is no harm. Where there is none to be had, this is the answer: clients try again.
    """

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "there are no producer ids at hand: try again")


def is_exhausted(epoch: int) -> bool:
    """Whether the next epoch must not be given to a producer."""
    return epoch >= HIGHEST_EPOCH - 1


def taken(fresh_id: int) -> int:
    """The new producer id that an operation was given; NeedsProducerId if it was not."""
    if fresh_id == NO_PRODUCER_ID:
        raise NeedsProducerId
    return fresh_id


def fenced(message: str, *, is_old_version: bool) -> ApiError:
    """The refusal of a producer that another has taken the place of; older clients know it by an older name."""
    code = ErrorCode.INVALID_PRODUCER_EPOCH if is_old_version else ErrorCode.PRODUCER_FENCED
    return ApiError(code, message)
