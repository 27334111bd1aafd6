"""How a group chooses its protocol, against counting by hand."""

from hypothesis import given
from hypothesis import strategies as st

from quire.coordinators.group.classic.protocol_vote import ProtocolVote

BALLOTS = st.lists(
    st.lists(st.sampled_from(["range", "roundrobin", "sticky", "cooperative"]), min_size=1, unique=True).map(
        lambda names: dict.fromkeys(names, b"")
    ),
    min_size=1,
    max_size=6,
)


@given(BALLOTS, st.integers(0, 5))
def test_the_winner_is_supported_by_all_and_preferred_by_most(ballots: list[dict[str, bytes]], leaving: int) -> None:
    vote = ProtocolVote()
    for ballot in ballots:
        vote.enter(ballot)
    if leaving < len(ballots) - 1:
        vote.withdraw(ballots.pop(leaving))
    common = [name for name in ballots[0] if all(name in ballot for ballot in ballots)]
    for name in ("range", "roundrobin", "sticky", "cooperative"):
        assert vote.supports_any([name]) == (name in common)
    if not common:
        return
    choices = [next(name for name in ballot if name in common) for ballot in ballots]
    most = max(choices.count(name) for name in choices)
    assert vote.winner(ballots) == next(name for name in choices if choices.count(name) == most)


def test_an_empty_group_supports_any_protocol() -> None:
    vote = ProtocolVote()
    assert vote.supports_any(["range"])
    vote.enter({"range": b""})
    vote.withdraw({"range": b""})
    assert vote.supports_any(["sticky"])
