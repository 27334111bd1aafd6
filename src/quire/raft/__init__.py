"""Consensus on the metadata log: Kafka's KRaft as a pure state machine, and the thin shell that gives it a disk.

`core.py` is the machine: an event and the time in, effects out. `roles/` has one file per role a replica can play, and
`transitions.py` the table of which role may follow which. `metadata_log.py` carries the effects out on the files of
`__cluster_metadata-0`; `format.py` writes a directory's first files. One node is a quorum of one and takes exactly the
same way. Imports protocol, storage and the seams only; what the records mean is `quire.metadata`'s concern.
"""
