"""Finding records by timestamp, for ListOffsets.

`timestamp_lookup.py` chooses the segment, `time_search.py` searches it from the position in its index on, and
`searcher.py` runs long searches in jobs. `time_scan_native.py` is the loop over batch headers.
"""
