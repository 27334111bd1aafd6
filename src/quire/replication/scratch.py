"""The buffers into which produced batches are decompressed for their check, used again and again.

A new buffer for each batch would cost more than decompressing it: the system provides and clears its pages. As many are
kept as checks run at once: one on the event loop, and one in each job.
"""

KEPT_BYTES = 2 * 1024 * 1024
"""Clients limit batches to a megabyte, before compression. Larger buffers are not kept."""
_KEPT = 3

_free: list[bytearray] = []
"""Its methods are atomic, so the threads of jobs need no lock."""


def take_scratch() -> bytearray:
    try:
        return _free.pop()
    except IndexError:
        return bytearray()


def give_back_scratch(scratch: bytearray) -> None:
    if len(scratch) <= KEPT_BYTES and len(_free) < _KEPT and not _is_viewed(scratch):
        _free.append(scratch)


def _is_viewed(scratch: bytearray) -> bool:
    """Whether a view of it is left, in the frames of an error: it cannot grow then."""
    try:
        scratch.append(0)
    except BufferError:
        return True
    del scratch[-1]
    return False
