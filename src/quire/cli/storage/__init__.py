"""Commands that work on data directories without a cluster: `quire storage`, `quire verify` and `quire dump-log`.

`dump` reads every kind of file there is in a data directory; `dump_log` is the command that prints them.
"""
