"""A node whose leader lost committed records ends with a reason; the connection that brought the response stays
open.
"""

from quire.address import Address
from quire.pending import Pending
from quire.protocol.schema import Message
from quire.raft.log_summary import LogPosition
from quire.raft.messages import Batch, BeginEpoch, FetchAnswer
from quire.raft.peers import NoAnswer, Purpose
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from simulator.disk import SimDisk
from tests.raft.sim_log import KEY, SimLog, format_folder

LEADER = 2
ENDPOINT = Endpoint("CONTROLLER", "localhost", 9093)
VOTERS = VoterSet([Voter(key, (ENDPOINT,)) for key in (KEY, ReplicaKey(LEADER, b"e" * 16), ReplicaKey(3, b"f" * 16))])


class SilentPeers:
    def ask(self, address: Address, purpose: Purpose, request: Message) -> Pending[Message | NoAnswer]:
        return Pending()

    def close(self) -> None: ...


def test_a_node_ends_with_a_sentence_if_its_leader_lost_committed_records() -> None:
    first = SimLog(format_folder(SimDisk())).open().run()
    first.append("a")
    first.run()
    committed = first.log.high_watermark
    epoch = first.log.epoch
    batches: tuple[Batch, ...] = first.log._store.read_batches(0, 1 << 20)
    first.log.close()

    disk = format_folder(SimDisk(), VOTERS)
    sim = SimLog(disk, peers=SilentPeers()).open()
    sim.log.requested(BeginEpoch(epoch, LEADER, KEY))
    sim.log.answered(LEADER, FetchAnswer(epoch, LEADER, 1, committed, batches=batches))
    sim.run(50)
    assert sim.values == ["a"]
    sim.log.answered(LEADER, FetchAnswer(epoch, LEADER, 2, diverging=LogPosition(0, 0)))
    assert "the leader lost committed records" in str(sim.failures[0])
