"""`quire produce` and `quire consume`: records in and out.

`produce` reads `lines` and sends each (`line_sender`). `consume` and `consume_group` read partitions or join a group,
apply `filters`, and print records (`record_printer`) in one of the formats of `record_format`.
"""
