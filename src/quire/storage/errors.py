"""Errors of data directories that the operator has to fix, and errors of a disk that may go away by themselves."""

import errno


class DataDirectoryError(Exception):
    """A data directory that cannot be used; the message says why and what to do."""


def unusable_directory(path: str, error: OSError) -> DataDirectoryError:
    """The error for a data directory that cannot be opened."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return DataDirectoryError(
            f"{path} cannot be used as a data directory: it or a folder above it is a file; change log.dirs."
        )
    return DataDirectoryError(
        f"{path} cannot be used as a data directory ({error.strerror}); "
        "make it readable and writable, or change log.dirs."
    )


def is_full(error: Exception) -> bool:
    """Whether a write failed only because the disk is full: nothing is broken, and a retry may succeed."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_shortage(error: Exception) -> bool:
    """Whether a resource is exhausted, which does not take a disk offline.

    Room, file descriptors, which all programs of a machine share, or the largest file size of this process.
    """
    used_up = (errno.EMFILE, errno.ENFILE, errno.EFBIG)
    return is_full(error) or (isinstance(error, OSError) and error.errno in used_up)
