"""What is to be told of files."""

from dataclasses import dataclass

from quire.cli.dump.folders import Contents


@dataclass(frozen=True, slots=True)
class Wanted:
    records: bool = False
    """Of each batch, or only its header."""
    contents: Contents | None = None
    """What records mean; None: as the folder's name says."""
    from_offset: int = 0
    """Batches that end before it are left out."""
    max_bytes: int | None = None
    """Of each log; the batch that reaches it is the last."""
