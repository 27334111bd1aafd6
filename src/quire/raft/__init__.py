"""Consensus on the metadata log: Kafka's KRaft as a pure state machine, and the thin shell that gives it a disk.

`core.py` is the machine: an event and the time in, effects out. `roles/` has one file per role of a replica, and
`transitions.py` the table of which role may follow which. `control_state.py` keeps the voters by offset, and
`voter_changes.py` has the rules for changing them. `metadata_log.py` carries out the effects on the files of
`__cluster_metadata-0`. A single node is a quorum of one and runs the same code. Imports protocol, storage and the seams
only; `quire.metadata` interprets the records.
"""
