"""Why a loop over the batches in a buffer stopped."""

END = 0
"""All whole batches in the buffer are processed."""
SPECIAL = 1
"""The next batch is compressed, transactional or a control batch, which the native loops leave to their caller."""
FULL = 2
"""The table has no room for another key, or the output for another batch."""
DAMAGED = 3
"""The next batch is damaged."""
