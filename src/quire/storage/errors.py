"""What can be wrong with a data directory that only its owner can put right."""

import errno


class DataDirectoryError(Exception):
    """A data directory that cannot be used; the message says why and what to do."""


def unusable_directory(path: str, error: OSError) -> DataDirectoryError:
    """Of a data directory that cannot even be opened."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return DataDirectoryError(
            f"{path} cannot be used as a data directory: it or a folder above it is a file; change log.dirs."
        )
    return DataDirectoryError(
        f"{path} cannot be used as a data directory ({error.strerror}); "
        "make it readable and writable, or change log.dirs."
    )


def is_full(error: Exception) -> bool:
    """Whether a write failed only for want of room: nothing is broken, and it may succeed in a moment."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_shortage(error: Exception) -> bool:
    """Whether something is merely used up: no reason to give a whole disk up.

    Room, descriptors, which all programs of a machine share, or the size that this process may give to one file.
    """
    used_up = (errno.EMFILE, errno.ENFILE, errno.EFBIG)
    return is_full(error) or (isinstance(error, OSError) and error.errno in used_up)
