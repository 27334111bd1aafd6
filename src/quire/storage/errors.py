"""What can be wrong with a data directory that only its owner can put right."""


class DataDirectoryError(Exception):
    """A data directory that cannot be used; the message says why and what to do."""
