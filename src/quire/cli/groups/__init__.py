"""`quire groups`: lists, describes and deletes groups, and resets their offsets.

`groups` has the smaller commands, `describe` and `reset_offsets` the two larger ones. `views` formats descriptions,
`offset_files` reads and writes offsets as CSV.
"""
