"""Consumer groups and their committed offsets: the state machine of `__consumer_offsets`.

classic/    the classic protocol: the clients assign partitions (JoinGroup, SyncGroup, Heartbeat, LeaveGroup)
consumer/   the consumer protocol (KIP-848): the coordinator assigns partitions (ConsumerGroupHeartbeat)
offsets/    the offsets that groups and single consumers have committed
machine     one partition of the topic: passes requests and records to these three

The path of a JoinGroup request of a classic group:

    node/api/join_group.handle
      group_requests.run_in_group        authorizes, finds the shard
        Shard.run                        calls the operation, which returns a CoordinatorResult
          GroupMachine.join_group        selects the protocol of the group
            ClassicGroups.join           checks, finds or creates the group
              JoinGroup.join             adds the member; `Member.awaiting_join` is the pending response
                Rebalance.prepare        starts the join phase and its timer
    all members have joined, or a timer fires
      Rebalance._complete_join           starts the next generation
        ResultBuilder.respond            one response for each waiting member
    the shard has no uncommitted records before the result
      ResultBuilder._written             completes the pending responses
        node/dispatch                    sends them

SyncGroup takes the same path to `SyncGroup.sync`. The leader's request writes the group's record, and
`SyncGroup._assignment_written` completes the waiting requests.
"""
