"""`quire explain`: what a topic promises, which faults it survives now, and what to change."""

import textwrap
from collections.abc import Iterable

import click

from quire.cli.cluster import topic_promises
from quire.cli.cluster.topic_state import NEVER, Settings, TopicState
from quire.cli.missing_topics import explaining_topic
from quire.cli.name_completion import complete_topics
from quire.client.admin.cluster import describe_cluster, describe_features
from quire.client.admin.configs import ConfigEntry, Resource, ResourceType, describe_configs
from quire.client.admin.quorum import describe_quorum
from quire.client.admin.topic_replicas import describe_replicas
from quire.client.errors import TimedOutError, UnsupportedError
from quire.client.shell_blocking import BlockingClient
from quire.console.options import cluster_options, connect, json_option
from quire.console.output import count, print_json
from quire.console.terminal import echo
from quire.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from quire.protocol.errors import ApiError

_SETTINGS = ("min.insync.replicas", "flush.messages", "flush.ms", "unclean.leader.election.enable")
_TITLES = {"promises": "PROMISED", "now": "NOW", "changes": "TO CHANGE"}
_WIDTH = 96
_QUORUM_PATIENCE_MS = 3_000.0
"""Without a leader the quorum does not answer; the rest is still shown."""


@click.command(
    epilog="""\b
Examples:
  quire explain orders
  quire explain orders --json"""
)
@click.argument("topic", shell_complete=complete_topics)
@json_option
@cluster_options
def explain(topic: str, as_json: bool, servers: str, timeout_s: float) -> None:
    """Say what a topic promises, which faults it survives now, and what to change.

    What is promised follows from its settings and its number of replicas; what it survives now, from the replicas that
    are in sync, and the brokers and controllers that are up.
    """
    with connect(servers, timeout_s) as client, explaining_topic(client, topic):
        state = _read_state(client, topic)
    sections = {
        "promises": list(topic_promises.promises(state)),
        "now": list(topic_promises.now(state)),
        "changes": list(topic_promises.changes(state)),
    }
    if as_json:
        print_json(_facts(state) | sections)
        return
    echo(_head(state))
    for name, sentences in sections.items():
        if sentences:
            echo()
            echo("\n".join([_TITLES[name], *_wrapped(sentences)]), headings=lambda line: line in _TITLES.values())


def _read_state(client: BlockingClient, name: str) -> TopicState:
    cluster = client.cluster
    partitions = client.run(describe_replicas(cluster, name))
    entries = client.run(describe_configs(cluster, Resource(ResourceType.TOPIC, name), _SETTINGS))
    described = client.run(describe_cluster(cluster, with_fenced=True))
    features = {each.name: each.finalized for each in client.run(describe_features(cluster))}
    racks = {broker.node_id: broker.rack for broker in described.brokers}
    return TopicState(
        name,
        _settings(entries),
        tuple(partitions),
        racks,
        frozenset(racks) - frozenset(described.fenced),
        features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0,
        _voters(client),
    )


def _voters(client: BlockingClient) -> frozenset[int]:
    try:
        quorum = client.run(describe_quorum(client.cluster), _QUORUM_PATIENCE_MS)
    except (ApiError, UnsupportedError, TimedOutError):
        return frozenset()
    return frozenset(member.node_id for member in quorum.voters)


def _settings(entries: Iterable[ConfigEntry]) -> Settings:
    values = {entry.name: entry.value for entry in entries if entry.value is not None}
    return Settings(
        int(values.get("min.insync.replicas", 1)),
        int(values.get("flush.messages", NEVER)),
        int(values.get("flush.ms", NEVER)),
        values.get("unclean.leader.election.enable", "false") == "true",
    )


def _facts(state: TopicState) -> dict[str, object]:
    settings, survives = state.settings, state.survives()
    return {
        "topic": state.name,
        "partitions": len(state.partitions),
        "replication_factor": state.factors[0],
        "min_insync_replicas": settings.min_insync_replicas,
        "required_in_sync": state.required,
        "flush_messages": None if settings.flush_messages == NEVER else settings.flush_messages,
        "flush_ms": None if settings.flush_ms == NEVER else settings.flush_ms,
        "unclean_election": settings.unclean_election,
        "eligible_leader_replicas": state.keeps_eligible,
        "brokers_down": state.down,
        "leaderless": state.leaderless,
        "refusing_acks_all": state.refusing,
        "survives": {
            "failures_for_writes": survives.writing,
            "failures_for_leaders": survives.leading,
            "racks_for_writes": [each for each in state.named_racks if each not in state.racks_for_writes()],
            "racks_for_leaders": [each for each in state.named_racks if each not in state.racks_for_leaders()],
        },
    }


def _head(state: TopicState) -> str:
    smallest, largest = state.factors
    replicas = count(largest, "replica") if smallest == largest else f"{smallest} to {largest} replicas"
    each = " each" if len(state.partitions) > 1 else ""
    return (
        f"topic {state.name}: {count(len(state.partitions), 'partition')} with {replicas}{each}, "
        f"min.insync.replicas={state.settings.min_insync_replicas}"
    )


def _wrapped(sentences: Iterable[str]) -> list[str]:
    return [
        textwrap.fill(sentence, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
        for sentence in sentences
    ]
