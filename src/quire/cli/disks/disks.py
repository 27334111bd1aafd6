"""`quire disks`: the data directories of brokers, and moving replicas between those of one broker."""

from collections.abc import Sequence
from typing import Any

import click

from quire.cli.disks.plan import Plan, make_plan, size_text
from quire.cli.disks.progress import follow
from quire.client.admin.cluster import LogDir, describe_cluster, describe_log_dirs
from quire.client.admin.configs import AlterConfigOp, ConfigChange, Resource, ResourceType, alter_configs
from quire.client.admin.log_dirs import move_replicas
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.console.explain import explain
from quire.console.failure import EXIT_NOT_FOUND, Failure, fail_with_all
from quire.console.groups import HelpfulGroup
from quire.console.options import IntRange, cluster_options, connect, json_option
from quire.console.output import count, format_table, print_json, title_of
from quire.console.terminal import confirm, echo, echo_failure

_TITLES = ("broker", "directory", "total", "free", "replicas", "size", "moving here", "state")
IS_TITLE = title_of(_TITLES)

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class Replica(click.ParamType[TopicPartition]):
    """`orders-3`: partition 3 of the topic orders."""

    name = "TOPIC-PARTITION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> TopicPartition:
        if isinstance(value, TopicPartition):
            return value
        topic, dash, index = str(value).rpartition("-")
        if not (topic and dash and index.isascii() and index.isdigit()):
            self.fail(f"{value!r} is not a topic and a partition, such as orders-3", param, ctx)
        return TopicPartition(topic, int(index))


@click.group(cls=HelpfulGroup, epilog="\b\nExample:\n  quire disks list")
def disks() -> None:
    """Show the data directories of brokers, and move replicas between those of a broker."""


@disks.command("list", epilog="\b\nExamples:\n  quire disks list\n  quire disks list --broker 1 --json")
@click.option("--broker", type=IntRange(min=0), metavar="ID", help="Only the directories of this broker.")
@json_option
@cluster_options
def list_disks(broker: int | None, as_json: bool, servers: str, timeout_s: float) -> None:
    """List the data directories of all brokers that serve."""
    with connect(servers, timeout_s) as client:
        found = {each: _described(client, each) for each in _brokers(client, broker)}
    if as_json:
        print_json([_as_json(each, directory) for each, listed in found.items() for directory in listed])
    else:
        echo(disks_view(found), headings=IS_TITLE)


@disks.command(
    epilog="""\b
Examples:
  quire disks move orders-3 orders-4 --broker 1 --to /disk2
  quire disks move --from /disk1 --to /disk2 --broker 1 --throttle 50000000
  quire disks move orders-3 --broker 1 --to /disk2 --dry-run --json

\b
The replicas serve meanwhile. After Ctrl-C the broker goes on; `quire disks list` shows how far it
is. To cancel, move the replica to the directory where it is."""
)
@click.argument("replicas", metavar="[TOPIC-PARTITION]...", nargs=-1, type=Replica())
@click.option("--from", "source", metavar="DIR", help="Move everything that is in this directory.")
@click.option("--to", "target", metavar="DIR", required=True, help="The directory to move to.")
@click.option("--broker", type=IntRange(min=0), metavar="ID", required=True, help="The broker that has both.")
@click.option("--throttle", type=IntRange(min=1), metavar="BYTES", help="The most bytes per second to copy.")
@click.option("--dry-run", is_flag=True, help="Only show what would move.")
@click.option("--no-wait", is_flag=True, help="Return when the moves have begun.")
@click.option("--yes", is_flag=True, help="Do not ask before replicas are moved with --from.")
@json_option
@cluster_options
def move(
    replicas: tuple[TopicPartition, ...],
    source: str | None,
    target: str,
    broker: int,
    throttle: int | None,
    dry_run: bool,
    no_wait: bool,
    yes: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Move replicas to another data directory of the same broker."""
    if bool(replicas) == (source is not None):
        raise click.UsageError("name replicas such as orders-3, or a directory with --from.")
    if throttle is not None and no_wait:
        raise click.UsageError("--throttle ends with the command, so it needs to wait: leave out --no-wait.")
    with connect(servers, timeout_s) as client:
        _brokers(client, broker)
        plan = make_plan(broker, _described(client, broker), replicas, source, target)
        if not as_json:
            echo(plan_view(plan, throttle))
        if plan.replicas and not dry_run:
            if source is not None and not yes and not as_json:
                confirm(f"Move {count(len(plan.replicas), 'replica')}?")
            _run(client, plan, throttle, wait=not no_wait)
        elif not plan.replicas and not dry_run:
            # A move elsewhere may be under way, which this cancels.
            _begin(client, broker, replicas, target)
    if as_json:
        print_json(_plan_json(plan, done=not dry_run and not no_wait))


def _brokers(client: BlockingClient, wanted: int | None) -> list[int]:
    serving = [each.node_id for each in client.run(describe_cluster(client.cluster)).brokers]
    if wanted is None:
        return sorted(serving)
    if wanted not in serving:
        raise Failure(
            f"no broker {wanted} serves; those that do: {', '.join(map(str, sorted(serving)))}.", EXIT_NOT_FOUND
        )
    return [wanted]


def _described(client: BlockingClient, broker: int) -> list[LogDir]:
    return client.run(describe_log_dirs(client.cluster, broker))


def _run(client: BlockingClient, plan: Plan, throttle: int | None, *, wait: bool) -> None:
    if throttle is not None:
        _limit(client, plan.broker, str(throttle))
    try:
        _begin(client, plan.broker, [TopicPartition(each.topic, each.partition) for each in plan.replicas], plan.target)
        if wait:
            follow(client, plan)
    except KeyboardInterrupt:
        kept = (
            "" if throttle is None else f" The limit stays: `quire configs alter broker {plan.broker} --unset {RATE}`."
        )
        echo_failure("quire", f"broker {plan.broker} goes on moving; `quire disks list` shows how far it is.{kept}")
        raise
    if throttle is not None:
        _limit(client, plan.broker, None)


def _begin(client: BlockingClient, broker: int, replicas: Sequence[TopicPartition], target: str) -> None:
    refused = client.run(move_replicas(client.cluster, broker, replicas, target))
    fail_with_all([explain(each) for each in refused.values()])


def _limit(client: BlockingClient, broker: int, value: str | None) -> None:
    operation = AlterConfigOp.SET if value is not None else AlterConfigOp.DELETE
    resource = Resource(ResourceType.BROKER, str(broker))
    client.run(alter_configs(client.cluster, resource, [ConfigChange(RATE, operation, value)]))


def disks_view(found: dict[int, list[LogDir]]) -> str:
    rows = []
    for broker, directories in found.items():
        for each in directories:
            held = [replica for replica in each.replicas if not replica.is_future]
            moving = [replica for replica in each.replicas if replica.is_future]
            rows.append(
                (
                    broker,
                    each.path,
                    size_text(each.total_bytes) if each.total_bytes >= 0 else None,
                    size_text(each.usable_bytes) if each.usable_bytes >= 0 else None,
                    len(held),
                    size_text(sum(replica.size_bytes for replica in held)),
                    len(moving),
                    "offline" if each.error is not None else "works",
                )
            )
    return format_table(_TITLES, rows)


def _as_json(broker: int, directory: LogDir) -> dict[str, object]:
    held = [replica for replica in directory.replicas if not replica.is_future]
    return {
        "broker": broker,
        "directory": directory.path,
        "online": directory.error is None,
        "total_bytes": directory.total_bytes if directory.total_bytes >= 0 else None,
        "free_bytes": directory.usable_bytes if directory.usable_bytes >= 0 else None,
        "replicas": len(held),
        "size_bytes": sum(replica.size_bytes for replica in held),
        "moving": [
            {
                "topic": replica.topic,
                "partition": replica.partition,
                "copied_bytes": replica.size_bytes,
                "offset_lag": replica.offset_lag,
            }
            for replica in directory.replicas
            if replica.is_future
        ],
    }


def plan_view(plan: Plan, throttle: int | None) -> str:
    if not plan.replicas:
        return f"nothing to move: everything is in {plan.target} already"
    seconds = plan.seconds(throttle)
    time = "" if seconds is None else f", in {seconds:.0f} s at least"
    names = ", ".join(f"{each.topic}-{each.partition}" for each in plan.replicas[:5])
    more = ", ..." if len(plan.replicas) > 5 else ""
    what = f"{count(len(plan.replicas), 'replica')} with {size_text(plan.size_bytes)}"
    return f"moving {what} to {plan.target} on broker {plan.broker}{time}: {names}{more}"


def _plan_json(plan: Plan, *, done: bool) -> dict[str, object]:
    return {
        "broker": plan.broker,
        "to": plan.target,
        "size_bytes": plan.size_bytes,
        "replicas": [
            {"topic": each.topic, "partition": each.partition, "size_bytes": each.size_bytes} for each in plan.replicas
        ],
        "done": done,
    }
