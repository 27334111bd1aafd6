"""Why a loop over the batches in a buffer stopped before, or at, its end."""

END = 0
"""All whole batches of the buffer are done."""
SPECIAL = 1
"""The next batch is compressed, transactional or a control batch: `special_batches` and `learning` see to it."""
FULL = 2
"""The table has no room for another key, or the output for another batch."""
DAMAGED = 3
"""The next batch is not what was once written."""
