"""Which contents of files dump-log shows."""

from dataclasses import dataclass

from quire.cli.storage.dump.folders import Contents


@dataclass(frozen=True, slots=True)
class Wanted:
    records: bool = False
    """Show the records of each batch, not only its header."""
    contents: Contents | None = None
    """What records contain; None: determined by the folder's name."""
    from_offset: int = 0
    """Batches that end before this offset are left out."""
    max_bytes: int | None = None
    """The limit for each log; the batch that reaches it is the last."""
