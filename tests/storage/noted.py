"""What led to a failure, in its message."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noted(circumstances: str) -> Iterator[None]:
    """Adds a note to every exception, so that a failure of one of many runs can be repeated."""
    try:
        yield
    except BaseException as problem:
        problem.add_note(circumstances)
        raise
