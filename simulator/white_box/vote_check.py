"""Votes: in one epoch a voter votes once and knows one leader, through any number of restarts.

A voter that forgets its vote may vote again in the same epoch, and then two candidates win it. That needs several
coincidences; that the voter has forgotten can be seen at once.
"""

from quire.protocol import uuids
from quire.raft.metadata_log import MetadataLog
from quire.raft.quorum_state import Election
from quire.raft.replicas import ReplicaKey
from simulator.violation import Violation

ONE_VOTE = "in an epoch a voter votes once and knows one leader, through any number of restarts"


class VoteCheck:
    def __init__(self) -> None:
        self._elections: dict[ReplicaKey, Election] = {}

    def check(self, log: MetadataLog) -> None:
        assert log._core is not None
        if not log._stopped and not log.waits_for_room:  # otherwise the node may know what is not on disk yet
            self.knows(log.key, log._core.role.election)

    def knows(self, voter: ReplicaKey, election: Election) -> None:
        before = self._elections.get(voter, Election())
        if not _may_follow(before, election):
            name = f"{voter.id} with directory {uuids.to_text(voter.directory_id)}"
            raise Violation(ONE_VOTE, f"{name} went from {before} to {election}")
        self._elections[voter] = election


def _may_follow(before: Election, now: Election) -> bool:
    """Once the leader of an epoch is known, the vote no longer matters."""
    if now.epoch != before.epoch:
        return now.epoch > before.epoch
    if before.leader_id is not None or before.voted is None:
        return now.leader_id == before.leader_id or before.leader_id is None
    # The file of a static quorum has no directory ids.
    return now.leader_id is not None or (now.voted is not None and now.voted.matches(before.voted))
