"""A whole node: its parts (`node`), how a request finds its handler (`dispatch`), the partitions it
holds (`partitions`), and in `api/` one file per API. It may use every layer below it, and no implementation of a seam.
"""
