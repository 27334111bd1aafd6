"""`quire cluster balance`: spreads replicas, leaderships and disk use evenly over the brokers that are up."""

import sys
from collections.abc import Sequence

import click

from quire.cli.partitions.carry_out import carry_out
from quire.cli.partitions.plan_view import IS_TITLE, plan_view, size
from quire.cli.partitions.planning import check_idle, check_leaders, explaining_plans, look
from quire.cli.partitions.progress import find_moving
from quire.client.admin.placements import ClusterPlacement
from quire.client.placement.layout import Layout
from quire.client.placement.model import Change, Limits, Placement
from quire.client.placement.plan_file import plan_json
from quire.client.placement.planner import balance as plan_balance
from quire.console.options import IntRange, cluster_options, connect, json_option
from quire.console.output import format_table, print_json, title_of
from quire.console.terminal import confirm, echo

_TITLES = ("broker", "rack", "replicas", "then", "leaders", "then", "bytes", "then")
_IS_LOAD_TITLE = title_of(_TITLES)


@click.command(
    epilog="""\b
Examples:
  quire cluster balance --dry-run
  quire cluster balance --max-moves 20 --max-bytes 50000000000
  quire cluster balance --dry-run --json > plan.json"""
)
@click.option("--max-moves", type=IntRange(min=0), help="Copy so many replicas at most.")
@click.option("--max-bytes", type=IntRange(min=0), help="Copy so many bytes at most.")
@click.option("--dry-run", is_flag=True, help="Show the plan only.")
@click.option("--throttle", type=IntRange(min=1), metavar="BYTES", help="Copy so many bytes in a second at most.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@cluster_options
def balance(
    max_moves: int | None,
    max_bytes: int | None,
    dry_run: bool,
    throttle: int | None,
    no_wait: bool,
    yes: bool,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Give each broker as many replicas, leaders and bytes as the others.

    It shows a plan that copies as little as possible, and carries it out. With limits it does the part that helps most,
    and a later run does the rest. Replicas of brokers that are down stay where they are.
    """
    with connect(servers, timeout_s) as client:
        found = look(client)
        check_idle(sorted(find_moving(client)))
        with explaining_plans():
            changes = plan_balance(found.nodes, found.partitions, Limits(max_moves, max_bytes))
        check_leaders(found, changes)
        if as_json:
            if dry_run or not changes:
                print_json(plan_json(changes) | {"brokers": _loads_json(found, changes)})
        else:
            _show(found, changes, throttle)
        if changes and not dry_run:
            if not yes and sys.stdin.isatty():
                confirm("Move them?")
            up = [each.broker_id for each in found.nodes]
            carry_out(client, changes, up, throttle=throttle, wait=not no_wait, as_json=as_json)


def _show(found: ClusterPlacement, changes: Sequence[Change], throttle: int | None) -> None:
    before, then = _layouts(found, changes)
    rows = [
        (
            each.broker_id,
            each.rack,
            before.count(each.broker_id),
            then.count(each.broker_id),
            before.led[each.broker_id],
            then.led[each.broker_id],
            size(before.bytes[each.broker_id]),
            size(then.bytes[each.broker_id]),
        )
        for each in found.nodes
    ]
    if changes:
        echo(plan_view(changes, throttle), headings=IS_TITLE)
        echo()
    echo(format_table(_TITLES, rows), headings=_IS_LOAD_TITLE)
    if not changes:
        echo("\nnothing to move: the cluster is balanced, as far as racks, disks and the limits allow")


def _loads_json(found: ClusterPlacement, changes: Sequence[Change]) -> list[dict[str, object]]:
    layouts = _layouts(found, changes)
    return [
        {
            "id": each.broker_id,
            "rack": each.rack,
            **{
                name: {
                    "replicas": layout.count(each.broker_id),
                    "leaders": layout.led[each.broker_id],
                    "bytes": layout.bytes[each.broker_id],
                }
                for name, layout in zip(("now", "then"), layouts, strict=True)
            },
        }
        for each in found.nodes
    ]


def _layouts(found: ClusterPlacement, changes: Sequence[Change]) -> tuple[Layout, Layout]:
    replicas = {(each.before.topic, each.before.partition): each.replicas for each in changes}

    def after(each: Placement) -> Placement:
        return each._replace(replicas=replicas.get((each.topic, each.partition), each.replicas))

    ids = [each.broker_id for each in found.nodes]
    return Layout(found.nodes, found.partitions, ids), Layout(found.nodes, [*map(after, found.partitions)], ids)
