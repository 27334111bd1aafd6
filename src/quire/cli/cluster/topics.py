"""`quire topics`: list, create, describe, alter, delete."""

import sys
from collections.abc import Sequence

import click

from quire.cli.cluster.config_changes import change_settings
from quire.cli.missing_topics import explaining_topic, topic_failures
from quire.cli.name_completion import complete_topics
from quire.cli.reports import NameResult, report
from quire.client.admin import configs
from quire.client.admin import topics as admin
from quire.client.admin.configs import AlterConfigOp, ConfigChange, Resource, ResourceType
from quire.client.admin.eligible_replicas import eligible_replicas
from quire.client.metadata import Topic
from quire.client.offsets import EARLIEST, LATEST, OffsetAt, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_USAGE, Failure, fail_with_all
from quire.console.groups import HelpfulGroup
from quire.console.options import IntRange, Setting, cluster_options, connect, json_option
from quire.console.output import count, numbers, print_json, print_table
from quire.console.terminal import confirm, echo
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.uuids import to_text


@click.group(
    cls=HelpfulGroup,
    epilog="""\b
Examples:
  quire topics list
  quire topics create orders --partitions 6
  quire topics describe orders""",
)
def topics() -> None:
    """List, create, describe, alter and delete topics."""


@topics.command("list", epilog="\b\nExample:\n  quire topics list --json")
@click.option("--internal", is_flag=True, help="Show Kafka's own topics too.")
@json_option
@cluster_options
def list_topics(internal: bool, as_json: bool, servers: str, timeout_s: float) -> None:
    """List topics."""
    with connect(servers, timeout_s) as client:
        found = client.run(admin.describe_topics(client.cluster))
    known = [topic for topic in found.values() if isinstance(topic, Topic) and (internal or not topic.internal)]
    if as_json:
        print_json(
            [
                {
                    "name": topic.name,
                    "id": to_text(topic.topic_id),
                    "partitions": len(topic.partitions),
                    "replication_factor": _replication_factor(topic),
                    "internal": topic.internal,
                }
                for topic in known
            ]
        )
    elif known:
        rows = [(topic.name, len(topic.partitions), _replication_factor(topic)) for topic in known]
        print_table(("name", "partitions", "replicas"), rows)
    else:
        _print_no_topics()


def _print_no_topics() -> None:
    echo("There are no topics yet; create one with `quire topics create NAME`.", err=True)


@topics.command(
    epilog="""\b
Examples:
  quire topics create orders --partitions 6
  quire topics create users -p 3 --set compression.type=zstd --set max.message.bytes=2000000
  quire topics create audit --replica-assignment 1,1    two partitions, both on node 1"""
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("-p", "--partitions", type=IntRange(min=1), help="Number of partitions.  [default: the broker's]")
@click.option("-r", "--replication-factor", type=IntRange(min=1), help="Copies of each partition.")
@click.option("-s", "--set", "--config", "settings", type=Setting(), multiple=True, help="A setting; repeatable.")
@click.option(
    "--replica-assignment",
    "assignment",
    metavar="NODES",
    help="Nodes of each partition; 1:2,2:3 is two partitions, on nodes 1 and 2 and on 2 and 3.",
)
@click.option("--if-not-exists", is_flag=True, help="Accept a topic that already exists.")
@click.option("--validate-only", is_flag=True, help="Check without creating anything.")
@json_option
@cluster_options
def create(
    names: Sequence[str],
    partitions: int | None,
    replication_factor: int | None,
    settings: Sequence[tuple[str, str]],
    assignment: str | None,
    if_not_exists: bool,
    validate_only: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Create topics."""
    replicas = {} if assignment is None else _parse_assignment(assignment)
    if replicas and (partitions or replication_factor):
        raise click.UsageError(
            "--replica-assignment gives the number of partitions and replicas; omit --partitions and the factor"
        )
    wanted = [
        admin.NewTopic(name, partitions or -1, replication_factor or -1, dict(settings), replicas) for name in names
    ]
    with connect(servers, timeout_s) as client:
        results = client.run(admin.create_topics(client.cluster, wanted, validate_only=validate_only))
    verb = "could be created" if validate_only else "created"
    lines: list[NameResult] = []
    for name in names:
        result = results[name]
        if isinstance(result, ApiError):
            accepted = if_not_exists and result.code == ErrorCode.TOPIC_ALREADY_EXISTS
            lines.append(NameResult(name, "already exists" if accepted else result, {"created": False}))
        else:
            counts = f"{count(result.partitions, 'partition')}, {count(result.replication_factor, 'replica')}"
            details: dict[str, object] = {
                "created": not validate_only,
                "id": to_text(result.topic_id),
                "partitions": result.partitions,
                "replication_factor": result.replication_factor,
            }
            lines.append(NameResult(name, f"{verb} ({counts})", details))
    report(lines, as_json)


@topics.command(
    epilog="""\b
Examples:
  quire topics describe orders
  quire topics describe --json            every topic"""
)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_topics)
@click.option("--internal", is_flag=True, help="Show Kafka's own topics too, if no topic is named.")
@json_option
@cluster_options
def describe(names: Sequence[str], internal: bool, as_json: bool, servers: str, timeout_s: float) -> None:
    """Show partitions with their leaders and offsets, and the settings of the topic itself.

    Shows all topics if none is named.
    """
    with connect(servers, timeout_s) as client:
        found = client.run(admin.describe_topics(client.cluster, names or None))
        known = [topic for topic in found.values() if isinstance(topic, Topic)]
        if not names and not internal:
            known = [topic for topic in known if not topic.internal]
        descriptions = [_describe(client, topic) for topic in known]
        errors = {name: error for name, error in found.items() if isinstance(error, ApiError)}
        failures = topic_failures(client, errors)
    if as_json:
        print_json(descriptions)
    elif not names and not known:
        _print_no_topics()
    else:
        for index, description in enumerate(descriptions):
            _print_description(description, first=index == 0)
    fail_with_all(failures)


def _describe(client: BlockingClient, topic: Topic) -> dict[str, object]:
    partitions = [TopicPartition(topic.name, index) for index in topic.led]
    first = client.run(list_offsets(client.cluster, dict.fromkeys(partitions, EARLIEST)))
    end = client.run(list_offsets(client.cluster, dict.fromkeys(partitions, LATEST)))
    eligible = client.run(eligible_replicas(client.cluster, [topic.name]))
    entries = client.run(configs.describe_configs(client.cluster, Resource(ResourceType.TOPIC, topic.name)))
    nothing = OffsetAt(-1, -1, -1)
    return {
        "name": topic.name,
        "id": to_text(topic.topic_id),
        "internal": topic.internal,
        "replication_factor": _replication_factor(topic),
        "configs": {entry.name: entry.value for entry in entries if entry.source == configs.ConfigSource.TOPIC},
        "partitions": [
            {
                "partition": part.index,
                "leader": None if part.leader < 0 else part.leader,
                "leader_epoch": part.leader_epoch,
                "replicas": part.replicas,
                "isr": part.isr,
                "elr": eligible.get(TopicPartition(topic.name, part.index)),
                "offline": part.offline,
                "first_offset": _known(first.get(TopicPartition(topic.name, part.index), nothing).offset),
                "end_offset": _known(end.get(TopicPartition(topic.name, part.index), nothing).offset),
            }
            for part in topic.partitions.values()
        ],
    }


def _known(offset: int) -> int | None:
    return None if offset < 0 else offset


def _print_description(description: dict[str, object], *, first: bool) -> None:
    parts = description["partitions"]
    settings = description["configs"]
    assert isinstance(parts, list) and isinstance(settings, dict)
    if not first:
        echo()
    echo(f"topic {description['name']}  id {description['id']}")
    for name, value in settings.items():
        echo(f"  {name}={value}")
    print_table(
        ("partition", "leader", "epoch", "replicas", "isr", "elr", "first", "end"),
        [
            (
                part["partition"],
                part["leader"],
                part["leader_epoch"],
                numbers(part["replicas"]),
                numbers(part["isr"]),
                numbers(part["elr"] or []),
                part["first_offset"],
                part["end_offset"],
            )
            for part in parts
        ],
    )


@topics.command(
    epilog="""\b
Examples:
  quire topics alter orders --partitions 12
  quire topics alter orders --set max.message.bytes=2000000 --unset compression.type"""
)
@click.argument("name", shell_complete=complete_topics)
@click.option("-p", "--partitions", type=IntRange(min=1), help="New total number of partitions.")
@click.option("-s", "--set", "changed", type=Setting(), multiple=True, help="Change a setting; repeatable.")
@click.option("--unset", "removed", multiple=True, metavar="KEY", help="Reset to the broker's value; repeatable.")
@json_option
@cluster_options
def alter(
    name: str,
    partitions: int | None,
    changed: Sequence[tuple[str, str]],
    removed: Sequence[str],
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Add partitions to a topic, or change its settings."""
    changes = [ConfigChange(key, AlterConfigOp.SET, value) for key, value in changed]
    changes += [ConfigChange(key, AlterConfigOp.DELETE) for key in removed]
    if partitions is None and not changes:
        raise click.UsageError("nothing to change; give --partitions, --set or --unset")
    different: list[str] = []
    error = None
    with connect(servers, timeout_s) as client, explaining_topic(client, name):
        if changes:
            different = change_settings(client, Resource(ResourceType.TOPIC, name), changes)
            if not as_json:
                done = (
                    f"{count(len(different), 'setting')} changed"
                    if different
                    else "its settings already have these values"
                )
                echo(f"{name}: {done}")
        if partitions is not None:
            error = client.run(admin.create_partitions(client.cluster, {name: partitions}))[name]
        if as_json:
            grown = {} if partitions is None or error is not None else {"partitions": partitions}
            print_json({"name": name, "changed": different, **grown})
        if error is not None:
            raise error
    if partitions is not None and not as_json:
        echo(f"{name}: {count(partitions, 'partition')} now")


@topics.command(epilog="\b\nExample:\n  quire topics delete orders audit --yes")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@json_option
@cluster_options
def delete(names: Sequence[str], yes: bool, if_exists: bool, as_json: bool, servers: str, timeout_s: float) -> None:
    """Delete topics with all their records. Asks for confirmation at a terminal."""
    if not yes and sys.stdin.isatty():
        confirm(f"Delete {', '.join(names)} with all records?")
    with connect(servers, timeout_s) as client:
        results = client.run(admin.delete_topics(client.cluster, names))
        missing = {
            name: error
            for name, error in results.items()
            if error is not None and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not if_exists
        }
        explained = dict(zip(missing, topic_failures(client, missing, creating_helps=False), strict=True))
    lines: list[NameResult] = []
    for name in dict.fromkeys(names):
        error = results[name]
        if error is None:
            lines.append(NameResult(name, "deleted", {"deleted": True}))
        elif if_exists and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            lines.append(NameResult(name, "did not exist", {"deleted": False}))
        else:
            lines.append(NameResult(name, error, {"deleted": False}))
    report(lines, as_json, explained)


def _replication_factor(topic: Topic) -> int:
    return max((len(partition.replicas) for partition in topic.partitions.values()), default=0)


def _parse_assignment(text: str) -> dict[int, list[int]]:
    try:
        return {index: [int(node) for node in nodes.split(":")] for index, nodes in enumerate(text.split(","))}
    except ValueError:
        raise Failure(f"{text!r} is not a list of nodes per partition such as 1:2,2:3.", EXIT_USAGE) from None
