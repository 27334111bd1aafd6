"""Removing segments: from the log, by retention, and later from the disk.

`retention.py` has Kafka's rules, and `expired_segments.py` applies them to a directory. `retired.py` and
`deleted_files.py` handle segments that are no longer part of the log until their files are removed.
"""
