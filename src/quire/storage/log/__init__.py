"""One partition's log. `Log` consists of parts that share `LogState`; each part is a file:

    log.py        `Log`: opening, beginning and closing a log
    state.py      the fields of a log, and what follows from them
    appending.py  appending as the leader, rolling segments, producers
    following.py  what a follower does: appending the leader's batches, truncating, starting over
    reading.py    finding and reading batches; lookups by timestamp and of aborted transactions
    deleting.py   deleting from the start of the log, and replacing compacted or damaged segments
    flushing.py   making the log durable
    takeover.py   a copy in another directory takes the place of the log

`append` and `read` run once for each produced and fetched partition: keep calls and allocations there to a minimum.
"""

from quire.storage.log.log import Log

__all__ = ["Log"]
