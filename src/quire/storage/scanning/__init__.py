"""Reading the batches of a segment and comparing checksums.

`batch_scan.py` walks headers, `segment_scan.py` reads every byte. `neighbours.py` checks what no checksum covers, and
`damage.py` distinguishes a torn log from a damaged one. `range_check.py`, `checked_ranges.py` and `checker.py` check
bytes that this process did not write before they are served for the first time.
"""
