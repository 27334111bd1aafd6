"""Groups and transactions: state that is kept in a log.

`runtime` keeps one state machine per partition of an internal topic: replayed when the node becomes the partition's
leader, changed by records alone, answered when these are committed. `group` and `transaction` are such machines. They
are pure: (request, caller, now) in, records and a response out; no socket, no file, no clock. `quire.node` hands them
requests and gives the runtime its channel to partitions. Both take regular expressions from clients; `regex` has those.
"""
