"""`quire configs`: the settings of topics and brokers, shown and changed while they run."""

from collections.abc import Sequence

import click

from quire.cli.config_changes import change_settings, check_names
from quire.cli.lazy import HelpfulGroup
from quire.cli.options import Setting, cluster_options, connect, json_option
from quire.cli.output import count, print_json, print_table
from quire.cli.terminal import echo
from quire.client.admin import configs as admin
from quire.client.admin.configs import ConfigChange, ConfigSource, Operation, Resource, ResourceType

KINDS = click.Choice(["topic", "broker", "brokers"])

SOURCES = {
    ConfigSource.TOPIC: "topic",
    ConfigSource.BROKER: "broker",
    ConfigSource.BROKER_DEFAULT: "all brokers",
    ConfigSource.STATIC: "start",
    ConfigSource.DEFAULT: "default",
}


@click.group(cls=HelpfulGroup)
def configs() -> None:
    """Show and change the settings of topics and brokers."""


@configs.command(
    epilog="""\b
Examples:
  quire configs describe topic orders           what was set for the topic
  quire configs describe topic orders --all     with the defaults of everything else
  quire configs describe broker 1 message.max.bytes
  quire configs describe brokers                what was set for all brokers"""
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
    """Show settings and where each comes from. KIND is topic, broker, or brokers for all brokers at once.

    FROM says `start` for what a node was started with: its file, its environment, its options.
    """
    resource = _resource(kind, name)
    with connect(servers, timeout_s) as client:
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
        echo("Nothing was set; --all shows the defaults.", err=True)


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
@click.option("--set", "changed", type=Setting(), multiple=True, help="Change a setting; repeatable.")
@click.option("--unset", "removed", multiple=True, metavar="KEY", help="Back to the default; repeatable.")
@click.option("--append", "appended", type=Setting(), multiple=True, help="Add to a list; repeatable.")
@click.option("--subtract", "subtracted", type=Setting(), multiple=True, help="Take out of a list; repeatable.")
@click.option("--validate-only", is_flag=True, help="Check, and change nothing.")
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
    """Change settings; those that are not named stay as they are. KIND is topic, broker or brokers."""
    resource = _resource(kind, name)
    changes = [
        *(ConfigChange(key, Operation.SET, value) for key, value in changed),
        *(ConfigChange(key, Operation.DELETE) for key in removed),
        *(ConfigChange(key, Operation.APPEND, value) for key, value in appended),
        *(ConfigChange(key, Operation.SUBTRACT, value) for key, value in subtracted),
    ]
    if not changes:
        raise click.UsageError("nothing to change; give --set, --unset, --append or --subtract")
    with connect(servers, timeout_s) as client:
        different = change_settings(client, resource, changes, validate_only=validate_only)
    if as_json:
        print_json({"kind": kind, "name": name, "changed": [] if validate_only else different})
        return
    what = "all brokers" if kind == "brokers" else f"{kind} {name}"
    if different:
        echo(f"{what}: {count(len(different), 'setting')} {'could be changed' if validate_only else 'changed'}")
    else:
        echo(f"{what}: nothing to change, it is so already")


def _resource(kind: str, name: str | None) -> Resource:
    if kind == "brokers":
        if name is not None:
            raise click.UsageError("brokers stands for all of them and takes no name; for one write `broker ID`")
        return Resource(ResourceType.BROKER, "")
    if name is None:
        raise click.UsageError(f"which {kind}? Give its {'name' if kind == 'topic' else 'node id'}")
    if kind == "broker" and not (name.isascii() and name.isdigit()):
        raise click.UsageError(f"{name!r} is not a node id, which is a number")
    return Resource(ResourceType.TOPIC if kind == "topic" else ResourceType.BROKER, name)
