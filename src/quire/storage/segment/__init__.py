"""One segment of a log. `Segment` is built in layers, from the fields up; each layer is a file and knows those below:

segment.py     `Segment`: creating, appending, truncating, retiring, closing
recovering.py  opening the last segment after a clean stop, and scanning a segment after a crash
lookup.py      finding batches by offset and by timestamp
indexing.py    keeping the indexes: adding entries, saving, rebuilding
state.py       the fields, the file, and what is known of damage
"""

from quire.storage.segment.segment import Segment

__all__ = ["Segment"]
