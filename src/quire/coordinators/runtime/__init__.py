"""The coordinator runtime: a state machine that is kept in a log, whatever its state.

    request ──▶ Shard.run(operation) ──▶ machine: operation(machine, now_ms) -> CoordinatorResult
                                              │ the records change the machine at once (replay)
                                              ▼
                                         one append at a time, at the expected offset (StateLog)
                                              │ committed                     │ failed or timed out
                                              ▼                               ▼
                                         the response is sent             waiting requests are refused, and the
                                                                          machine is loaded from the log again

shard              the machine of one partition: `run`, appends, responses; `runtime` has all shards of a node
machine            the StateMachine protocol class, and what the runtime gives to a machine
result             what an operation returns; `result_builder` builds it in steps
record             keys and values of records; `unsent` puts them into batches
loader             replays the log; `latest_native` is its inner loop
state_log, channel the partition and the network as the runtime sees them; the node implements both
partitioning       which partition has a group or a transactional id
"""
