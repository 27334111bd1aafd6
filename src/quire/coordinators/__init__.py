"""Coordinators: groups and transactions, whose state is kept in a log.

runtime/       runs one state machine per partition of an internal topic: loads it from the log when the node becomes
               leader, changes it by records only, and sends responses when these records are committed
group/         the state machine of `__consumer_offsets`
transaction/   the state machine of `__transaction_state`
regex/         regular expressions that clients send, matched in linear time

The machines are pure: (request, caller, now) in, records and a response out; no socket, file or clock. `quire.node`
passes requests to them and gives the runtime a channel to partitions.
"""
