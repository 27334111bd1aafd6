"""`quire groups describe`: what groups have read, how far they are behind and who is in them, once or live."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import click

from quire.cli.group_views import group_json, headline, members_table, partitions_table
from quire.cli.options import FloatRange, cluster_options, connect, json_option
from quire.cli.output import print_json
from quire.cli.terminal import echo, to_json
from quire.cli.watch import watch
from quire.client.admin.group_lag import GroupDetail, group_details
from quire.client.admin.groups import list_groups
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError


@click.command(
    epilog="""\b
Examples:
  quire groups describe readers                   offsets and lag, partition by partition
  quire groups describe readers --members         who is in it and what each reads
  quire groups describe readers --watch           again every two seconds, until Ctrl-C
  quire groups describe --json                    every group, with everything"""
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("-m", "--members", is_flag=True, help="The members and what each reads, instead of the offsets.")
@click.option("-w", "--watch", "live", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option(
    "--interval",
    "interval_s",
    type=FloatRange(min=0.1),
    default=2,
    show_default=True,
    metavar="SECONDS",
    help="How often --watch looks.",
)
@json_option
@cluster_options
def describe(
    names: Sequence[str],
    members: bool,
    live: bool,
    interval_s: float,
    as_json: bool,
    servers: str,
    timeout_s: float,
) -> None:
    """Show state, committed offsets, lag and members of groups; of all of them if none is named.

    LAG is how many records lie between what the group has committed and the end of the partition. With --watch and
    --json each look is one line.
    """
    with connect(servers, timeout_s) as client:
        if live:
            watch(client, lambda: _look(client, names, members, as_json), interval_s)
        found = _find(client, names)
    known = _known(found)
    if as_json:
        print_json([group_json(detail) for detail in known])
    elif known:
        echo(_view(known, members))
    elif not found:
        echo("There is no group yet; one comes to be when a consumer joins it.", err=True)
    _raise_the_first(found)


def _find(client: BlockingClient, names: Sequence[str]) -> dict[str, GroupDetail | ApiError]:
    if not names:
        listed, failure = client.run(list_groups(client.cluster))
        if failure is not None:
            raise failure
        names = [group.group_id for group in listed if group.reads]
    return client.run(group_details(client.cluster, names))


def _known(found: Mapping[str, GroupDetail | ApiError]) -> list[GroupDetail]:
    return [detail for detail in found.values() if isinstance(detail, GroupDetail)]


def _raise_the_first(found: Mapping[str, GroupDetail | ApiError]) -> None:
    for detail in found.values():
        if isinstance(detail, ApiError):
            raise detail


def _look(client: BlockingClient, names: Sequence[str], members: bool, as_json: bool) -> str:
    """One view of a live one; it leaves out what is not there now, unless that is everything."""
    found = _find(client, names)
    known = _known(found)
    if not known:
        _raise_the_first(found)
    if as_json:
        return to_json([group_json(detail) for detail in known])
    return f"{datetime.now():%H:%M:%S}\n{_view(known, members) or 'There is no group.'}\n"


def _view(details: Sequence[GroupDetail], members: bool) -> str:
    return "\n\n".join(
        f"{headline(detail)}\n{members_table(detail.group) if members else partitions_table(detail.partitions)}"
        for detail in details
    )
