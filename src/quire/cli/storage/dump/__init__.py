"""Reads the files of a data directory for `quire dump-log`.

`folders` finds the files and their kinds. `batches`, `indexes` and `small_files` read a file into a stream of `Fact`s,
with no more than one batch in memory; `contents` decodes the records of internal topics. `text` and `json_lines` print
facts for people and for programs. Only `read_only` opens files.
"""
