"""Mistakes in the consensus on metadata (quire.raft)."""

from simulator.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a vote is not synced before it is sent",
        "quire.raft.log_store:LogStore.write_election",
        'write_atomically(self._disk, f"{self.path}/{quorum_state.FILE_NAME}", content)',
        'file = self._disk.open(f"{self.path}/{quorum_state.FILE_NAME}", create=True)\n'
        "    file.pwritev([content], 0)\n"
        "    file.truncate(len(content))\n"
        "    file.close()",
        quorum=True,
    ),
    Mutant(
        "a vote for a candidate with a shorter log",
        "quire.raft.replica:Replica.is_behind",
        "return self.log.last <= last",
        "return True",
        quorum=True,
    ),
    Mutant(
        "half of the voters are a majority",
        "quire.raft.replicas:VoterSet.majority",
        "len(self._by_id) // 2 + 1",
        "len(self._by_id) // 2",
        quorum=True,
    ),
    Mutant(
        "a voter fetches on before its log is synced",
        "quire.raft.roles.follower:Follower.synced",
        "self._awaits is Awaits.SYNC and replica.log.is_synced",
        "self._awaits is Awaits.SYNC",
        quorum=True,
    ),
    Mutant(
        "a diverging metadata log is not truncated",
        "quire.raft.roles.leader:Leader._divergence",
        "if agreed.epoch == request.last_epoch and request.offset <= agreed.offset:",
        "if request.offset <= log.end_offset:",
        quorum=True,
    ),
    Mutant(
        "an answer of another leader's time is taken for current",
        "quire.raft.leadership_checks:LeadershipChecks.take_confirmed",
        "if confirming < voters.majority:",
        "if not self._checked:",
    ),
)
