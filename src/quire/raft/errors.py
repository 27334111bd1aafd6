"""What makes a metadata log unusable."""


class MetadataLogError(Exception):
    """The metadata cannot be used as it is: damaged, not this node's, or beyond it. The message says what to do."""
