"""What can be wrong with a data directory that only its owner can put right."""

import errno


class DataDirectoryError(Exception):
    """A data directory that cannot be used; the message says why and what to do."""


def is_full(error: Exception) -> bool:
    """Whether a write failed only for want of room: nothing is broken, and it may succeed in a moment."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
