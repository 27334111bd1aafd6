"""The indexes beside a segment: by offset, by time, and of aborted transactions.

`index_file.py` is what the first two share. `aborted_lookup.py` searches the third across the segments of a log.
"""
