"""Opening a log after a clean stop, a crash or a power loss.

`log_recovery.py` opens a log from the files in a folder, and `recovery_scan.py` checks what a crash may have torn.
`roll_mark.py` and `gap_mark.py` are marks that the last process left. `left_overs.py` completes or removes the files of
interrupted work.
"""
