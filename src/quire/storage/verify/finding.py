"""What is wrong with a file."""

from typing import NamedTuple


class Finding(NamedTuple):
    path: str
    position: int | None
    """Where in the file; None when it is about the file as a whole."""
    what: str

    def __str__(self) -> str:
        place = self.path if self.position is None else f"{self.path} at position {self.position}"
        return f"{place}: {self.what}"
