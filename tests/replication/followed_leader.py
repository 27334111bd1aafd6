"""A leader and its followers, for tests of what their fetches mean."""

from quire.replication.followers import Followers
from quire.replication.in_sync_replicas import IsrChange
from quire.replication.members import Members
from quire.replication.settings import PartitionSettings
from tests.replication.leader import Leader

EPOCH = 50
"""The broker epoch of every follower."""
LAG_MS = 1_000.0


def leader_of(replicas: tuple[int, ...], isr: tuple[int, ...], *, min_isr: int = 1, written: int = 0) -> Leader:
    """Node 1 leads."""
    leader = Leader(PartitionSettings(min_insync_replicas=min_isr), isr=isr)
    leader.partition.become_leader(0, Members(replicas, isr, 0))
    for _ in range(written):
        leader.append(b"x", acks_all=False)
    return leader


def fetched(leader: Leader, replica_id: int, offset: int, start: int = 0) -> None:
    leader.role.followers.fetched(replica_id, EPOCH, offset, start)


def change_of(leader: Leader) -> IsrChange:
    change = leader.role.followers.change
    assert change is not None
    return change


def agree(leader: Leader, partition_epoch: int) -> None:
    followers = leader.role.followers
    followers.change_members(Members(followers.in_sync.replicas, change_of(leader).isr, partition_epoch))


def followers_of(leader: Leader) -> Followers:
    return leader.role.followers
