"""The settings of the metadata log and its quorum, from a node's configuration."""

from quire.address import Address
from quire.config.broker_config import BrokerConfig
from quire.raft.addresses import Addresses
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet
from quire.raft.settings import MetadataLogSettings, QuorumSettings


def log_settings(config: BrokerConfig) -> MetadataLogSettings:
    return MetadataLogSettings(
        quorum=QuorumSettings(
            election_timeout_ms=config.get_int("controller.quorum.election.timeout.ms"),
            election_backoff_max_ms=config.get_int("controller.quorum.election.backoff.max.ms"),
            fetch_timeout_ms=config.get_int("controller.quorum.fetch.timeout.ms"),
            retry_backoff_ms=config.get_int("controller.quorum.retry.backoff.ms"),
        ),
        segment_bytes=_segment_bytes(config),
        segment_ms=config.get_int("metadata.log.segment.ms"),
        bytes_between_snapshots=config.get_int("metadata.log.max.record.bytes.between.snapshots"),
        snapshot_interval_ms=config.get_int("metadata.log.max.snapshot.interval.ms"),
        retention_bytes=config.get_int("metadata.max.retention.bytes"),
        retention_ms=config.get_int("metadata.max.retention.ms"),
    )


def _segment_bytes(config: BrokerConfig) -> int:
    """As for topics, the internal setting has no lower limit."""
    name = "internal.metadata.log.segment.bytes"
    return config.get_int(name if config.get(name) is not None else "metadata.log.segment.bytes")


def static_voters(config: BrokerConfig) -> VoterSet | None:
    """`controller.quorum.voters`; None if the log names the voters."""
    topology = config.topology
    if not topology.voters:
        return None
    names = config.get_list("controller.listener.names")
    return VoterSet(
        Voter(ReplicaKey(voter.id), (Endpoint(names[0], voter.host, voter.port),)) for voter in topology.voters
    )


def addresses(config: BrokerConfig) -> Addresses:
    """How this node finds controllers: by the listeners they share, and first of all through bootstrap servers."""
    servers = [item.rpartition(":") for item in config.topology.bootstrap_servers]
    return Addresses(
        config.get_list("controller.listener.names"),
        [Address(host.removeprefix("[").removesuffix("]"), int(port)) for host, _, port in servers],
    )
