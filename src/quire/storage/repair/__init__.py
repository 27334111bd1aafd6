"""Repairing a damaged segment from another replica.

targets.py        which segments a repair replaces: the damaged one or, in a compacted log, more
segment_copy.py   the intact copy of one segment: what this replica still has, and for the rest what another one sends

Jobs write the copy; `quire.node.replicas.segment_repairs` fetches what is missing and replaces the segment.
"""
