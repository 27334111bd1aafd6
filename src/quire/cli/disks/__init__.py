"""`quire disks`: the data directories of brokers, and moving replicas between those of one broker.

disks.py      the commands
plan.py       which replicas move, and why that is not possible
progress.py   follows the moves until they are done
"""
