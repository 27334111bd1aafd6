"""Where a replica looks for others: in the voter set, in announcements of leaders, and at first among bootstrap
servers."""

from quire.address import Address
from quire.raft.addresses import Addresses
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.raft.wire import LeaderEndpoint

VOTERS = VoterSet(
    [
        Voter(ReplicaKey(1), (Endpoint("INSIDE", "a", 1), Endpoint("CONTROLLER", "b", 2))),
        Voter(ReplicaKey(2), ()),
    ]
)


def test_a_voter_is_reached_at_the_listener_that_this_node_uses_too() -> None:
    assert Addresses(["controller"]).of(1, VOTERS) == Address("b", 2)
    assert Addresses(["other"]).of(1, VOTERS) == Address("a", 1)


def test_a_leader_that_the_voter_set_has_no_address_of_is_reached_where_it_says() -> None:
    addresses = Addresses(["CONTROLLER"])
    assert addresses.of(2, VOTERS) is None
    addresses.learn(LeaderEndpoint(2, "c", 3), epoch=5)
    assert addresses.of(2, VOTERS) == Address("c", 3)


def test_the_leader_of_an_epoch_is_reached_where_it_says_although_the_voter_set_is_older() -> None:
    addresses = Addresses(["CONTROLLER"])
    addresses.learn(LeaderEndpoint(1, "moved", 3), epoch=5)
    addresses.learn(LeaderEndpoint(1, "long ago", 3), epoch=4)
    assert addresses.of(1, VOTERS, leads_epoch=5) == Address("moved", 3)
    assert addresses.of(1, VOTERS, leads_epoch=6) == Address("b", 2)
    assert addresses.of(1, VOTERS) == Address("b", 2)


def test_bootstrap_servers_have_negative_ids_as_in_kafka() -> None:
    addresses = Addresses([], [Address("x", 1), Address("y", 2)])
    assert addresses.bootstrap_ids == [-2, -3]
    assert addresses.of(-3, VOTERS) == Address("y", 2)
