"""A state machine kept in a log, whatever its state is about.

    request ──▶ shard.run(operation) ──▶ machine: (now) -> Result(records, response)
                                              │ records change the machine at once (replay) ...
                                              ▼
                                         one append at a time, through the node's channel, at the expected offset
                                              │ ... and the response is given when they are committed
                                              ▼
                                         an append that fails, or of which nothing is heard: the shard forgets
                                         everything, refuses whoever waits, and replays its log again

`record` has what is in the log, `result` what an operation returns, `machine` what a state machine looks like.
"""
