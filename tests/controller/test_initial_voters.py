import pytest

from quire.controller.initial_voters import InitialVotersError, format_initial_voters, parse_initial_voters
from quire.protocol import uuids
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet

ONE, TWO = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"
VOTERS = VoterSet(
    [
        Voter(ReplicaKey(1, uuids.from_text(ONE)), (Endpoint("CONTROLLER", "host-1", 9093),)),
        Voter(ReplicaKey(2, uuids.from_text(TWO)), (Endpoint("CONTROLLER", "::1", 9193),)),
    ]
)


def test_voters_are_read_and_written_as_kafka_has_them() -> None:
    text = f"1@host-1:9093:{ONE},2@[::1]:9193:{TWO}"
    assert parse_initial_voters(text, "controller") == VOTERS
    assert format_initial_voters(VOTERS) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no controller"),
        ("1@localhost:9093", "is not ID@HOST:PORT:DIRECTORY_ID"),
        (f"localhost:9093:{ONE}", "is not ID@HOST:PORT:DIRECTORY_ID"),
        (f"1@localhost:99999:{ONE}", "is not ID@HOST:PORT:DIRECTORY_ID"),
        ("1@localhost:9093:mine", "'mine' in .* is not a directory id"),
        ("1@localhost:9093:AAAAAAAAAAAAAAAAAAAAAA", "is not a directory id"),
        (f"1@a:1:{ONE},1@b:1:{TWO}", "the node id 1 twice"),
        (f"1@a:1:{ONE},2@b:1:{ONE}", f"the directory id {ONE} twice"),
        (f"1@a:1:{ONE},2@a:1:{TWO}", "the address a:1 twice"),
    ],
)
def test_a_configuration_without_voters_is_refused(text: str, why: str) -> None:
    with pytest.raises(InitialVotersError, match=why):
        parse_initial_voters(text, "CONTROLLER")
