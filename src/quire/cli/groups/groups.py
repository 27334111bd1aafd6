"""`quire groups`: list, delete and delete-offsets. `describe` and `reset_offsets` are in their own files."""

import sys
from collections.abc import Sequence

import click

from quire.cli.groups.describe import describe
from quire.cli.groups.reset_offsets import reset_offsets
from quire.cli.name_completion import complete_groups
from quire.cli.reports import NameResult, report
from quire.cli.scopes import Scope, ScopeType
from quire.client.admin import groups as admin
from quire.client.admin.group_lag import GroupDetail, group_details
from quire.client.group_offsets import committed_offsets
from quire.client.group_offsets import delete_offsets as forget
from quire.console.failure import EXIT_NOT_FOUND, Failure
from quire.console.groups import HelpfulGroup
from quire.console.options import cluster_options, connect, json_option
from quire.console.output import print_json, print_table
from quire.console.terminal import confirm, echo
from quire.protocol.errors import ApiError, ErrorCode

STATES = ("Assigning", "CompletingRebalance", "Dead", "Empty", "PreparingRebalance", "Reconciling", "Stable")
PROTOCOLS = ("classic", "consumer", "share", "streams")


@click.group(
    cls=HelpfulGroup,
    epilog="""\b
Examples:
  quire groups list --lag
  quire groups describe readers --watch
  quire groups reset-offsets readers --topic orders --to-earliest""",
)
def groups() -> None:
    """List, describe and delete groups, and reset their offsets."""


groups.add_command(describe)
groups.add_command(reset_offsets)


@groups.command(
    "list",
    epilog="""\b
Examples:
  quire groups list
  quire groups list --lag                   with members and lag
  quire groups list --state empty --json""",
)
@click.option("--state", "states", type=click.Choice(STATES, case_sensitive=False), multiple=True, help="Only these.")
@click.option("--protocol", "protocols", type=click.Choice(PROTOCOLS), multiple=True, help="Only these.")
@click.option("--lag", "with_lag", is_flag=True, help="Show the number of members, and the lag.")
@json_option
@cluster_options
def list_groups(
    states: Sequence[str], protocols: Sequence[str], with_lag: bool, as_json: bool, servers: str, timeout_s: float
) -> None:
    """List groups.

    With --lag, UNCOMMITTED is the number of records in partitions that members read without a committed offset; LAG
    leaves them out.
    """
    details: dict[str, GroupDetail | ApiError] = {}
    with connect(servers, timeout_s) as client:
        found, failure = client.run(admin.list_groups(client.cluster, states=states, protocols=protocols))
        if with_lag:
            names = [group.group_id for group in found if group.reads]
            details = client.run(group_details(client.cluster, names))
    known = {name: detail for name, detail in details.items() if isinstance(detail, GroupDetail)}
    if as_json:
        print_json([_listed_json(group, known.get(group.group_id), with_lag) for group in found])
    elif found:
        titles = (
            "name",
            "protocol",
            "type",
            "state",
            "coordinator",
            *(("members", "lag", "uncommitted") if with_lag else ()),
        )
        print_table(titles, [_listed_row(group, known.get(group.group_id), with_lag) for group in found])
    elif failure is None:
        wanted = " like that" if states or protocols else " yet; a consumer that joins a group creates it"
        echo(f"There is no group{wanted}.", err=True)
    if failure is not None:
        raise failure


def _listed_row(group: admin.ListedGroup, detail: GroupDetail | None, with_lag: bool) -> tuple[str | int | None, ...]:
    row = (group.group_id, group.protocol or None, group.protocol_type or None, group.state, group.coordinator)
    if not with_lag:
        return row
    if detail is None:
        return (*row, None, None, None)
    return (*row, len(detail.group.members), detail.lag, detail.uncommitted.records)


def _listed_json(group: admin.ListedGroup, detail: GroupDetail | None, with_lag: bool) -> dict[str, object]:
    described: dict[str, object] = {
        "name": group.group_id,
        "protocol": group.protocol,
        "protocol_type": group.protocol_type,
        "state": group.state,
        "coordinator": group.coordinator,
    }
    if with_lag:
        described["members"] = None if detail is None else len(detail.group.members)
        described["lag"] = None if detail is None else detail.lag
        described["uncommitted"] = None if detail is None else detail.uncommitted._asdict()
    return described


@groups.command(epilog="\b\nExample:\n  quire groups delete readers auditors --yes")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_groups)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--if-exists", is_flag=True, help="Ignore groups that do not exist.")
@json_option
@cluster_options
def delete(names: Sequence[str], yes: bool, if_exists: bool, as_json: bool, servers: str, timeout_s: float) -> None:
    """Delete groups without members, with all their offsets. Asks for confirmation at a terminal."""
    if not yes and sys.stdin.isatty():
        confirm(f"Delete {', '.join(names)} with all committed offsets?")
    with connect(servers, timeout_s) as client:
        results = client.run(admin.delete_groups(client.cluster, names))
    lines: list[NameResult] = []
    for name in dict.fromkeys(names):
        error = results[name]
        if error is None:
            lines.append(NameResult(name, "deleted", {"deleted": True}))
        elif if_exists and error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            lines.append(NameResult(name, "did not exist", {"deleted": False}))
        else:
            lines.append(NameResult(name, error, {"deleted": False}))
    report(lines, as_json)


@groups.command(
    epilog="""\b
Examples:
  quire groups delete-offsets readers --topic orders            all partitions
  quire groups delete-offsets readers --topic orders:0,3 --yes"""
)
@click.argument("name", shell_complete=complete_groups)
@click.option(
    "-t", "--topic", "scopes", type=ScopeType(), multiple=True, required=True, help="What to delete; repeatable."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@cluster_options
def delete_offsets(
    name: str, scopes: Sequence[Scope], yes: bool, as_json: bool, servers: str, timeout_s: float
) -> None:
    """Delete committed offsets of topics that no member of the group reads.

    Asks for confirmation at a terminal.
    """
    with connect(servers, timeout_s) as client:
        committed = client.run(committed_offsets(client.cluster, [name]))[name]
        if isinstance(committed, ApiError):
            raise committed
        topic_partitions = sorted(
            topic_partition for topic_partition in committed if any(scope.covers(topic_partition) for scope in scopes)
        )
        if not topic_partitions:
            of = " or ".join(map(str, scopes))
            advice = f"`quire groups describe {name}` shows its offsets"
            raise Failure(f"group {name} has no committed offsets for {of}; {advice}.", EXIT_NOT_FOUND)
        if not yes and sys.stdin.isatty():
            confirm(f"Delete the offsets that {name} has committed for {', '.join(map(str, topic_partitions))}?")
        results = client.run(forget(client.cluster, name, topic_partitions))
    lines: list[NameResult] = []
    for topic_partition in topic_partitions:
        error = results[topic_partition]
        details: dict[str, object] = {
            "topic": topic_partition.topic,
            "partition": topic_partition.partition,
            "deleted": error is None,
        }
        lines.append(NameResult(str(topic_partition), "deleted" if error is None else error, details))
    report(lines, as_json)
