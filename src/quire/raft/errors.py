"""What makes a metadata log unusable."""


class MetadataLogError(Exception):
    """The metadata is damaged, not this node's, or not supported. The message says what to do."""
