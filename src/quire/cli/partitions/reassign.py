"""`quire partitions reassign`: moves replicas to other brokers, and shows or ends what is in progress."""

import sys
from collections.abc import Sequence
from itertools import starmap
from pathlib import Path

import click

from quire.cli.name_completion import complete_topics
from quire.cli.partitions.carry_out import carry_out
from quire.cli.partitions.in_progress import cancel, list_moving, watch_moving
from quire.cli.partitions.plan_view import IS_TITLE, plan_view
from quire.cli.partitions.planning import check_brokers, check_idle, check_leaders, explaining_plans, look, of_topics
from quire.cli.partitions.progress import find_moving
from quire.client.admin.placements import ClusterPlacement
from quire.client.offsets import TopicPartition
from quire.client.placement import planner
from quire.client.placement.model import Change
from quire.client.placement.plan_file import changes_of, parse_plan, plan_json
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_USAGE, Failure
from quire.console.options import IntRange, cluster_options, connect, json_option
from quire.console.output import print_json
from quire.console.terminal import confirm, echo


class Names(click.ParamType[tuple[str, ...]]):
    """`a,b,c`."""

    name = "NAME,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = [each.strip() for each in str(value).split(",")]
        if not all(names):
            self.fail(f"{value!r} is not a list of names such as orders,audit", param, ctx)
        return tuple(dict.fromkeys(names))


class BrokerIds(click.ParamType[tuple[int, ...]]):
    """`1,2,3`."""

    name = "ID,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        ids = [each.strip() for each in str(value).split(",")]
        if not all(each.isascii() and each.isdigit() for each in ids):
            self.fail(f"{value!r} is not a list of broker ids such as 1,2,3", param, ctx)
        return tuple(dict.fromkeys(map(int, ids)))


@click.command(
    epilog="""\b
Examples:
  quire partitions reassign --drain 3 --dry-run              what would move
  quire partitions reassign --drain 3 --throttle 50000000    at 50 MB/s for each broker
  quire partitions reassign --brokers 1,2,4 --topics orders
  quire partitions reassign --topics audit --replication-factor 3
  quire partitions reassign --plan plan.json --yes
  quire partitions reassign --watch                          progress of what was begun
  quire partitions reassign --cancel"""
)
@click.option("--brokers", type=BrokerIds(), help="Put the replicas on these brokers only, evenly.")
@click.option("--topics", type=Names(), shell_complete=complete_topics, help="Of these topics.  [default: all]")
@click.option("--drain", "drained", type=BrokerIds(), help="Move everything away from these brokers.")
@click.option("--replication-factor", "factor", type=IntRange(min=1), help="Replicas of each partition.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A plan in the JSON of Kafka's tool, or as --dry-run --json prints it.",
)
@click.option("--list", "lists", is_flag=True, help="Show the reassignments that are in progress.")
@click.option("--watch", "watches", is_flag=True, help="Show how far they are until they are done.")
@click.option("--cancel", "cancels", is_flag=True, help="End them; partitions keep the replicas that they had.")
@click.option("--dry-run", is_flag=True, help="Show the plan only.")
@click.option("--throttle", type=IntRange(min=1), metavar="BYTES", help="Copy so many bytes in a second at most.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@cluster_options
def reassign(
    brokers: tuple[int, ...] | None,
    topics: tuple[str, ...] | None,
    drained: tuple[int, ...] | None,
    factor: int | None,
    plan_file: Path | None,
    lists: bool,
    watches: bool,
    cancels: bool,
    dry_run: bool,
    throttle: int | None,
    no_wait: bool,
    yes: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Move replicas to other brokers.

    It makes a plan that is even, spreads replicas over racks and copies as little as possible, shows it, and carries
    it out. Clients go on meanwhile, and a partition keeps its old replicas until the new ones are in sync. Ctrl-C ends
    the command, not the reassignment.
    """
    _check_usage(
        makes_plan=sum(each is not None for each in (drained, plan_file)),
        other=any(each is not None for each in (brokers, factor)),
        has_topics=topics is not None,
        about_progress=lists + watches + cancels,
        drains=drained is not None,
        has_plan_file=plan_file is not None,
    )
    with connect(servers, timeout_s) as client:
        if lists:
            list_moving(client, topics or (), as_json=as_json)
        elif watches:
            watch_moving(client, topics or (), as_json=as_json)
        elif cancels:
            cancel(client, topics or (), yes=yes, as_json=as_json)
        else:
            found = look(client)
            with explaining_plans():
                changes = _plan(client, found, brokers, topics or (), drained, factor, plan_file)
            check_leaders(found, changes)
            _show(changes, throttle, dry_run=dry_run, as_json=as_json)
            if changes and not dry_run:
                if not yes and sys.stdin.isatty():
                    confirm("Move them?")
                up = [each.broker_id for each in found.nodes]
                carry_out(client, changes, up, throttle=throttle, wait=not no_wait, as_json=as_json)


def _check_usage(
    *, makes_plan: int, other: bool, has_topics: bool, about_progress: int, drains: bool, has_plan_file: bool
) -> None:
    if about_progress:
        if about_progress > 1 or makes_plan or other:
            raise click.UsageError("--list, --watch and --cancel are about what is in progress; give one of them alone")
        return
    if makes_plan > 1 or (makes_plan and other) or (has_plan_file and has_topics):
        raise click.UsageError("give either --brokers, --topics and --replication-factor, or --drain, or --plan")
    if not (makes_plan or other or has_topics):
        raise click.UsageError(
            "say what moves: --drain ID, --brokers ID,..., --topics NAME,..., --replication-factor N, or --plan FILE"
        )


def _plan(
    client: BlockingClient,
    found: ClusterPlacement,
    brokers: Sequence[int] | None,
    topics: Sequence[str],
    drained: Sequence[int] | None,
    factor: int | None,
    plan_file: Path | None,
) -> list[Change]:
    moving = find_moving(client)
    partitions = of_topics(client, found, topics)
    if plan_file is not None:
        wanted = parse_plan(_read(plan_file))
        check_idle(sorted(moving.keys() & set(starmap(TopicPartition, wanted))))
        return changes_of(wanted, found.nodes, partitions)
    check_idle(sorted(moving.keys() & {TopicPartition(each.topic, each.partition) for each in partitions}))
    if drained is not None:
        check_brokers(found, drained)
        return planner.drain(found.nodes, partitions, drained)
    if brokers is None and factor is not None:
        return planner.refactor(found.nodes, partitions, factor)
    targets = brokers if brokers is not None else [each.broker_id for each in found.nodes]
    return planner.spread(found.nodes, partitions, targets, factor)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path} cannot be read: {error}.", EXIT_USAGE) from error


def _show(changes: Sequence[Change], throttle: int | None, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        if dry_run or not changes:
            print_json(plan_json(changes))
    elif changes:
        echo(plan_view(changes, throttle), headings=IS_TITLE)
    else:
        echo("nothing to move: the partitions are as they should be")
