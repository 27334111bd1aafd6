"""Checks from inside, which no client can make: what the nodes of a cluster believe must fit together.

image_digest       a hash of an image, equal for equal images
quorum_check       one leader of the metadata log in each epoch, one active controller; high watermarks
committed_check    what is committed in the metadata log is the same on every node, and stays so
partition_check    one leader of each partition in each epoch; high watermarks
replica_check      replicas of a partition while there are faults: what is committed, batches below the high watermark
equal_replicas     replicas of a partition at the end: complete logs
white_box          all of these, at regular intervals and at the end
"""
