"""Consumer groups of the new protocol (KIP-848): the coordinator decides, and leads its members there by heartbeats.

A group has a group epoch, which goes up when its members, what they subscribe to or the topics themselves change; a
target assignment, made by an assignor for one group epoch; and for each member a current assignment at a member epoch.
A heartbeat does up to four things, and whatever it changes is a record:

    1. the member joins, or says what is new about it              ConsumerGroupMemberMetadata
    2. something changed: the group epoch goes up                  ConsumerGroupMetadata
    3. the target is older than the group epoch: a new one         ConsumerGroupTargetAssignmentMember, -Metadata
    4. the member is brought nearer to its target                  ConsumerGroupCurrentMemberAssignment

A member comes to a newer epoch only when it has given up what is no longer its own, and gets a partition only when
nobody else has it: no member waits for all the others, and no partition ever has two owners.

`manager` is the door; `group` and `member` are the state; `heartbeat` are the steps above, `reconciliation` the fourth.
`assignors` make targets, `metadata_hash` notices changed topics, `classic_members` and `migration` are for groups on
their way from the classic protocol to this one, or back.
"""
