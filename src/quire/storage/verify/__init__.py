"""Checking a data directory offline: every byte of every log, and all other files against the logs.

`quire verify` calls this and prints the findings. It changes and repairs nothing. Opening the directory would rebuild
indexes and truncate torn ends.
"""
