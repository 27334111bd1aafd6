"""The timeouts of an election, by the names of their Kafka settings (`controller.quorum.*`)."""

from typing import NamedTuple


class QuorumSettings(NamedTuple):
    election_timeout_ms: int = 1000
    """How long a voter without a leader waits before it asks for votes; up to twice as long, at random."""

    election_backoff_max_ms: int = 1000
    """The longest wait of a voter that lost an election before it starts the next."""

    fetch_timeout_ms: int = 2000
    """How long a follower waits for a response before it looks for another leader."""

    quick_election_jitter_ms: int = 25
    """The longest wait before an election that has a reason to start at once; no setting of Kafka's."""

    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500


class MetadataLogSettings(NamedTuple):
    """The metadata log on disk, by the names of Kafka's settings (`metadata.log.*` and `metadata.max.*`)."""

    quorum: QuorumSettings = QuorumSettings()
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    bytes_between_snapshots: int = 20 << 20
    snapshot_interval_ms: int = 3600 * 1000
    """The longest time between a change and the snapshot that contains it; 0 means that only the size counts."""
    retention_bytes: int = 100 << 20
    retention_ms: int = 7 * 24 * 3600 * 1000
