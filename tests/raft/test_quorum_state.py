"""The election in a file, byte for byte as Kafka 4.3.1 writes it."""

import pytest

from quire.protocol import uuids
from quire.raft.quorum_state import Election, QuorumStateError, decode, encode
from quire.raft.replicas import ReplicaKey, VoterSet

VOTERS = VoterSet.of_ids([1])
DIRECTORY = uuids.from_text("1PZZx6MVSJGpCQxfkgsKvQ")


def test_a_leader_is_written_as_kafka_writes_it() -> None:
    assert encode(Election(2, leader_id=1), VOTERS, kraft_version=1) == (
        b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )


def test_a_static_quorum_has_its_voters_in_the_file() -> None:
    assert encode(Election(2, leader_id=1), VOTERS, kraft_version=0) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )


@pytest.mark.parametrize(
    "election",
    [Election(), Election(7), Election(7, leader_id=3), Election(7, voted=ReplicaKey(2, DIRECTORY))],
    ids=str,
)
def test_a_written_election_is_read_back(election: Election) -> None:
    assert decode(encode(election, VOTERS, kraft_version=1)) == election


def test_a_static_quorum_forgets_only_the_directory() -> None:
    election = Election(7, voted=ReplicaKey(2, DIRECTORY))
    assert decode(encode(election, VOTERS, kraft_version=0)) == Election(7, voted=ReplicaKey(2))


@pytest.mark.parametrize("content", [b"", b"{}", b"nonsense", b'{"data_version":9}', b"[1]", b'{"data_version":1}'])
def test_a_damaged_file_is_refused(content: bytes) -> None:
    with pytest.raises(QuorumStateError):
        decode(content)


def test_a_vote_is_given_once_per_epoch() -> None:
    voted = Election(3, voted=ReplicaKey(1))
    assert not voted.may_become(Election(3, voted=ReplicaKey(2)))
    assert not voted.may_become(Election(3))
    assert not voted.may_become(Election(2, leader_id=1))
    assert voted.may_become(Election(3, leader_id=2))
    assert voted.may_become(Election(4))


def test_an_epoch_has_one_leader() -> None:
    led = Election(3, leader_id=1)
    assert not led.may_become(Election(3, leader_id=2))
    assert not led.may_become(Election(3))
    assert led.may_become(Election(4, leader_id=2))
