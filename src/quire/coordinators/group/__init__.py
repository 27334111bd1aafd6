"""Groups of consumers, and the offsets they committed: the state machine behind `__consumer_offsets`.

classic/    the clients decide: join, sync, heartbeat, leave; one round of everybody for each change
consumer/   the coordinator decides (KIP-848): a target assignment, reached member by member
offsets/    what groups, and single consumers, have committed
"""
