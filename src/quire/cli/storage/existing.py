"""Checks that the paths in the arguments exist. One that may not be read is not mistaken for a missing one."""

import os
from collections.abc import Iterable

from quire.console.failure import EXIT_NOT_FOUND, Failure, fail_with_all


def check_exist(paths: Iterable[str]) -> None:
    """Fails with exit code 4 if some do not exist. PermissionError if a folder above one may not be read."""
    fail_with_all([Failure(f"{path} does not exist.", EXIT_NOT_FOUND) for path in paths if not _exists(path)])


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
