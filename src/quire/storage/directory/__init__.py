"""One data directory: its owner, its logs, and the offsets that it keeps for them across restarts.

`LogDirectory` is built in layers; each layer is a file and knows those below:

log_directory.py    `LogDirectory`: opening and closing it, creating, deleting and truncating logs, checkpoints
directory_start.py  opening the logs of the last process; `log_loading.py` runs that in jobs, `log_opener.py` opens one
directory_state.py  the fields, and what happens when the disk fails (`availability.py`)

`meta_properties.py`, `partition_metadata.py`, `clean_shutdown.py`, `registration_mark.py` and `checkpoints.py` are its
files; `remembered_offsets.py` and `checkpoint_writer.py` keep the checkpoints up to date. `removals.py` removes unused
files, and `reserve.py` reserves room on the disk for the metadata log.
"""
