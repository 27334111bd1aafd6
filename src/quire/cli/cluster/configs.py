"""`quire configs`: shows and changes the settings of topics and brokers while they run."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import click

from quire.cli.cluster.config_changes import change_settings, check_names
from quire.cli.missing_topics import explaining_topic
from quire.client.admin import configs as admin
from quire.client.admin.configs import AlterConfigOp, ConfigChange, ConfigSource, Resource, ResourceType
from quire.client.shell_blocking import BlockingClient
from quire.console.groups import HelpfulGroup
from quire.console.options import Setting, cluster_options, connect, json_option
from quire.console.output import count, print_json, print_table
from quire.console.terminal import echo

KINDS = click.Choice(["topic", "topics", "broker", "brokers"])

SOURCES = {
    ConfigSource.TOPIC: "topic",
    ConfigSource.BROKER: "broker",
    ConfigSource.BROKER_DEFAULT: "all brokers",
    ConfigSource.STATIC: "start",
    ConfigSource.DEFAULT: "default",
}


@click.group(
    cls=HelpfulGroup,
    epilog="""\b
Examples:
  quire configs describe topic orders --all
  quire configs alter topic orders --set max.message.bytes=2000000""",
)
def configs() -> None:
    """Show and change the settings of topics and brokers."""


@configs.command(
    epilog="""\b
Examples:
  quire configs describe topic orders           the settings of the topic itself
  quire configs describe topic orders --all     with all defaults
  quire configs describe broker 1 message.max.bytes
  quire configs describe brokers                the settings of all brokers"""
)
@click.argument("kind", type=KINDS)
@click.argument("name", required=False)
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@click.option("-a", "--all", "everything", is_flag=True, help="Defaults too.")
@json_option
@cluster_options
def describe(
    kind: str,
    name: str | None,
    keys: Sequence[str],
    everything: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Show settings and the source of each. KIND is topic, broker, or brokers for all brokers at once.

    FROM is `start` for settings that the node was started with: from its file, its environment or its options.
    """
    kind = "topic" if kind == "topics" else kind
    resource = _resource(kind, name)
    with connect(servers, timeout_s) as client, _explaining(client, resource):
        entries = client.run(admin.describe_configs(client.cluster, resource, keys or None))
        found = [entry.name for entry in entries]
        missing = [key for key in keys if key not in found]
        if missing:
            check_names(client, resource, missing)
    shown = [entry for entry in entries if everything or keys or entry.is_set]
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "source": entry.source.name,
                    "read_only": entry.read_only,
                    "sensitive": entry.sensitive,
                }
                for entry in shown
            ]
        )
    elif shown:
        rows = [
            (
                entry.name,
                "(hidden)" if entry.sensitive else entry.value,
                SOURCES.get(entry.source, entry.source.name.lower()),
                "at start" if entry.read_only else "any time",
            )
            for entry in shown
        ]
        print_table(("name", "value", "from", "can change"), rows)
    else:
        echo("Nothing is set; --all shows the defaults.", err=True)


@configs.command(
    epilog="""\b
Examples:
  quire configs alter topic orders --set max.message.bytes=2000000
  quire configs alter topic orders --set message.timestamp.type=LogAppendTime --unset compression.type
  quire configs alter broker 1 --unset message.max.bytes
  quire configs alter brokers --set message.max.bytes=2000000 --validate-only"""
)
@click.argument("kind", type=KINDS)
@click.argument("name", required=False)
@click.option("-s", "--set", "changed", type=Setting(), multiple=True, help="Change a setting; repeatable.")
@click.option("--unset", "removed", multiple=True, metavar="KEY", help="Reset to the default; repeatable.")
@click.option("--append", "appended", type=Setting(), multiple=True, help="Add to a list; repeatable.")
@click.option("--subtract", "subtracted", type=Setting(), multiple=True, help="Remove from a list; repeatable.")
@click.option("--validate-only", is_flag=True, help="Check without changing anything.")
@json_option
@cluster_options
def alter(
    kind: str,
    name: str | None,
    changed: Sequence[tuple[str, str]],
    removed: Sequence[str],
    appended: Sequence[tuple[str, str]],
    subtracted: Sequence[tuple[str, str]],
    validate_only: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Change settings; all others stay as they are. KIND is topic, broker or brokers."""
    kind = "topic" if kind == "topics" else kind
    resource = _resource(kind, name)
    changes = [
        *(ConfigChange(key, AlterConfigOp.SET, value) for key, value in changed),
        *(ConfigChange(key, AlterConfigOp.DELETE) for key in removed),
        *(ConfigChange(key, AlterConfigOp.APPEND, value) for key, value in appended),
        *(ConfigChange(key, AlterConfigOp.SUBTRACT, value) for key, value in subtracted),
    ]
    if not changes:
        raise click.UsageError("nothing to change; give --set, --unset, --append or --subtract")
    with connect(servers, timeout_s) as client, _explaining(client, resource):
        different = change_settings(client, resource, changes, validate_only=validate_only)
    if as_json:
        print_json({"kind": kind, "name": name, "changed": [] if validate_only else different})
        return
    what = "all brokers" if kind == "brokers" else f"{kind} {name}"
    if different:
        echo(f"{what}: {count(len(different), 'setting')} {'could be changed' if validate_only else 'changed'}")
    else:
        echo(f"{what}: nothing to change, the values are already set")


def _explaining(client: BlockingClient, resource: Resource) -> AbstractContextManager[None]:
    return explaining_topic(client, resource.name) if resource.kind == ResourceType.TOPIC else nullcontext()


def _resource(kind: str, name: str | None) -> Resource:
    if kind == "brokers":
        if name is not None:
            raise click.UsageError("brokers means all brokers and takes no name; for a single one, write `broker ID`")
        return Resource(ResourceType.BROKER, "")
    if name is None:
        raise click.UsageError(f"which {kind}? Give its {'name' if kind == 'topic' else 'node id'}")
    if kind == "broker" and not (name.isascii() and name.isdigit()):
        raise click.UsageError(f"{name!r} is not a node id; node ids are numbers")
    return Resource(ResourceType.TOPIC if kind == "topic" else ResourceType.BROKER, name)
