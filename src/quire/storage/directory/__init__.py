"""One data directory: its owner, its logs, and the offsets that it keeps for them across restarts.

`log_directory.py` is the directory. `meta_properties.py`, `partition_metadata.py`, `clean_shutdown.py` and
`checkpoints.py` are its files; `remembered_offsets.py` and `checkpoint_writer.py` keep the checkpoints up to date.
`reserve.py` reserves room on the disk for the metadata log.
"""
