"""Checking a whole data directory offline: every byte of every log, and whatever stands beside it, against it.

Nothing is changed and nothing is repaired: `quire verify` calls this and prints what is found. Opening the directory
would rebuild what can be rebuilt, and cut off an unfinished end.
"""
