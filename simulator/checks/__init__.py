"""Checks from outside: whether an answer can be true, given what clients had learned before they sent the request.

checker               the entry: acknowledgements and producer ids; it holds the other checkers of records
fetch_checker         batches as they were read        known_records       an offset keeps its record
log_bounds            start, end, stable offset        whole_log           a log from its start to its end
losses                what power losses may take
expiry                what retention may have deleted  superseded          what compaction may have removed
transaction_checker   transactions and fencing         read_committed      a log as a read_committed reader sees it
metadata_checker      topics and settings              served              batches, each decoded once
"""
