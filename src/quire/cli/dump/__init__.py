"""What `quire dump-log` knows of the files in a data directory.

`folders` says which files there are and what each is. `batches`, `indexes` and `small_files` read one and say what is
in it as a stream of `Fact`s, holding no more than one batch in memory; `contents` decodes records whose meaning is
known. `text` and `json_lines` show facts to people and to programs. Only `read_only` touches a file.
"""
