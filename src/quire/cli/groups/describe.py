"""`quire groups describe`: committed offsets, lag and members of groups, once or live."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import click

from quire.cli.groups.views import group_json, headline, is_title, members_table, partitions_table
from quire.cli.name_completion import complete_groups
from quire.cli.reports import fail_for_each
from quire.client.admin.group_lag import GroupDetail, group_details
from quire.client.admin.groups import list_groups
from quire.client.shell_blocking import BlockingClient
from quire.console.live_screen import watch
from quire.console.options import cluster_options, connect, json_option, watch_options
from quire.console.output import print_json
from quire.console.printable import printable
from quire.console.terminal import echo, to_json
from quire.protocol.errors import ApiError, ErrorCode


@click.command(
    epilog="""\b
Examples:
  quire groups describe readers                   offsets and lag, partition by partition
  quire groups describe readers --members         the members, and what each reads
  quire groups describe readers --watch           refreshed every two seconds, until Ctrl-C
  quire groups describe --json                    all groups, in full"""
)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_groups)
@click.option("-m", "--members", is_flag=True, help="The members and what each reads, instead of the offsets.")
@watch_options
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
    """Show state, committed offsets, lag and members of groups; of all groups if none is named.

    LAG is the number of records between the committed offset and the end of the partition. Partitions without a
    committed offset have none: the first line counts them, and the records that they hold. --watch waits for groups
    that do not exist yet; with --json, each refresh prints one line.
    """
    with connect(servers, timeout_s) as client:
        if live:
            watch(client, lambda: _refresh(client, names, members, as_json), interval_s, is_title)
        found = _find(client, names)
    known = _known(found)
    if as_json:
        print_json([group_json(detail) for detail in known])
    elif known:
        echo(_view(known, members), headings=is_title)
    elif not found:
        echo("There are no groups yet; a consumer that joins a group creates it.", err=True)
    fail_for_each({name: error for name, error in found.items() if isinstance(error, ApiError)})


def _find(client: BlockingClient, names: Sequence[str]) -> dict[str, GroupDetail | ApiError]:
    if not names:
        listed, failure = client.run(list_groups(client.cluster))
        if failure is not None:
            raise failure
        names = [group.group_id for group in listed if group.reads]
    return client.run(group_details(client.cluster, names))


def _known(found: Mapping[str, GroupDetail | ApiError]) -> list[GroupDetail]:
    return [detail for detail in found.values() if isinstance(detail, GroupDetail)]


def _refresh(client: BlockingClient, names: Sequence[str], members: bool, as_json: bool) -> str:
    """One refresh of a live view. It waits for groups that do not exist: each gets a line, but no JSON."""
    found = _find(client, names)
    known = _known(found)
    missing = {name: error for name, error in found.items() if isinstance(error, ApiError)}
    for error in missing.values():
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise error
    if as_json:
        return to_json([group_json(detail) for detail in known])
    waiting = "\n".join(f"group {printable(name)} does not exist yet" for name in missing)
    body = "\n\n".join(part for part in (_view(known, members), waiting) if part)
    return f"{datetime.now():%H:%M:%S}\n{body or 'There is no group.'}\n"


def _view(details: Sequence[GroupDetail], members: bool) -> str:
    return "\n\n".join(
        f"{headline(detail)}\n{members_table(detail.group) if members else partitions_table(detail.partitions)}"
        for detail in details
    )
