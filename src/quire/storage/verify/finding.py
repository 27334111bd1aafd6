"""A fault that `quire verify` found in a file."""

from typing import NamedTuple


class Finding(NamedTuple):
    path: str
    position: int | None
    """Where in the file; None if it concerns the whole file."""
    what: str
    is_rebuilt_at_start: bool = False
    """Not damage: a crash leaves the file like this by design, and the next start rebuilds it."""

    @classmethod
    def of_error(cls, path: str, error: Exception) -> "Finding":
        """A finding that concerns the whole file. The path at the start of the error's text is removed."""
        return cls(path, None, str(error).removeprefix(path).lstrip(": "))

    def __str__(self) -> str:
        location = self.path if self.position is None else f"{self.path} at position {self.position}"
        return f"{location}: {self.what}"
