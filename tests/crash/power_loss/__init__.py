"""Power loss under real processes: a preloaded library records what a node changes and syncs, and what the disk of a
machine would have kept of it takes the place of the node's data.

    recorder.c     the library
    journal.py     its records, read back
    machine.py     the machine under a node: it loses power, and starts again
"""
