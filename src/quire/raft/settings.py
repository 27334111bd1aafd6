"""The timeouts of an election, by the names of their Kafka settings (`controller.quorum.*`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    election_timeout_ms: int = 1000
    """How long a voter without a leader waits before it asks for votes; doubled at random, so that one is first."""

    election_backoff_max_ms: int = 1000
    """How long, at most, a voter that lost an election waits before the next."""

    fetch_timeout_ms: int = 2000
    """How long a follower goes without an answer before it looks for another leader."""

    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
