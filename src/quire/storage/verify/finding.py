"""What is wrong with a file."""

from typing import NamedTuple


class Finding(NamedTuple):
    path: str
    position: int | None
    """Where in the file; None when it is about the file as a whole."""
    what: str
    is_made_anew: bool = False
    """No damage: a crash leaves it so by design, and the next start makes anew what is missing or wrong."""

    @classmethod
    def of_error(cls, path: str, error: Exception) -> "Finding":
        """About the file as a whole; most errors begin with its path, which is said already."""
        return cls(path, None, str(error).removeprefix(path).lstrip(": "))

    def __str__(self) -> str:
        place = self.path if self.position is None else f"{self.path} at position {self.position}"
        return f"{place}: {self.what}"
