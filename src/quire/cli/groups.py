"""`quire groups`: list, delete, delete-offsets. Describing and resetting are in files of their own."""

import sys
from collections.abc import Sequence

import click

from quire.cli.describe_groups import describe
from quire.cli.lazy import EXIT_NOT_FOUND, Failure, HelpfulGroup
from quire.cli.options import cluster_options, connect, json_option
from quire.cli.output import print_json, print_table
from quire.cli.reports import Outcome, report
from quire.cli.reset_offsets import reset_offsets
from quire.cli.scopes import Scope, ScopeType
from quire.cli.terminal import confirm, echo
from quire.client.admin import groups as admin
from quire.client.admin.group_lag import GroupDetail, group_details
from quire.client.group_offsets import committed_offsets
from quire.client.group_offsets import delete_offsets as forget
from quire.protocol.errors import ApiError, ErrorCode

STATES = ("Assigning", "CompletingRebalance", "Dead", "Empty", "PreparingRebalance", "Reconciling", "Stable")
PROTOCOLS = ("classic", "consumer", "share", "streams")


@click.group(cls=HelpfulGroup)
def groups() -> None:
    """List, describe and delete groups, and reset their offsets."""


groups.add_command(describe)
groups.add_command(reset_offsets)


@groups.command(
    "list",
    epilog="""\b
Examples:
  quire groups list
  quire groups list --lag                   with members, and how far each group is behind
  quire groups list --state empty --json""",
)
@click.option("--state", "states", type=click.Choice(STATES, case_sensitive=False), multiple=True, help="Only these.")
@click.option("--protocol", "protocols", type=click.Choice(PROTOCOLS), multiple=True, help="Only these.")
@click.option("--lag", "with_lag", is_flag=True, help="Count members and what is still to be read.")
@json_option
@cluster_options
def list_groups(
    states: Sequence[str], protocols: Sequence[str], with_lag: bool, as_json: bool, servers: str, timeout_s: float
) -> None:
    """List the groups there are."""
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
        titles = ("name", "protocol", "type", "state", "coordinator", *(("members", "lag") if with_lag else ()))
        print_table(titles, [_listed_row(group, known.get(group.group_id), with_lag) for group in found])
    elif failure is None:
        wanted = " like that" if states or protocols else " yet; one comes to be when a consumer joins it"
        echo(f"There is no group{wanted}.", err=True)
    if failure is not None:
        raise failure


def _listed_row(group: admin.ListedGroup, detail: GroupDetail | None, with_lag: bool) -> tuple[str | int | None, ...]:
    row = (group.group_id, group.protocol or None, group.protocol_type or None, group.state, group.coordinator)
    if not with_lag:
        return row
    return (*row, None, None) if detail is None else (*row, len(detail.group.members), detail.lag)


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
    return described


@groups.command(epilog="\b\nExample:\n  quire groups delete readers auditors --yes")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--if-exists", is_flag=True, help="A group that is not there is not an error.")
@json_option
@cluster_options
def delete(names: Sequence[str], yes: bool, if_exists: bool, as_json: bool, servers: str, timeout_s: float) -> None:
    """Delete groups without members, with all their offsets. Asks first when a person is at the keyboard."""
    if not yes and sys.stdin.isatty():
        confirm(f"Delete {', '.join(names)} with all committed offsets?")
    with connect(servers, timeout_s) as client:
        results = client.run(admin.delete_groups(client.cluster, names))
    outcomes: list[Outcome] = []
    for name in dict.fromkeys(names):
        error = results[name]
        if error is None:
            outcomes.append((name, "deleted", {"deleted": True}))
        elif if_exists and error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            outcomes.append((name, "was not there", {"deleted": False}))
        else:
            outcomes.append((name, error, {"deleted": False}))
    report(outcomes, as_json)


@groups.command(
    epilog="""\b
Examples:
  quire groups delete-offsets readers --topic orders            of all partitions
  quire groups delete-offsets readers --topic orders:0,3 --yes"""
)
@click.argument("name")
@click.option("-t", "--topic", "scopes", type=ScopeType(), multiple=True, required=True, help="Of this; repeatable.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@cluster_options
def delete_offsets(
    name: str, scopes: Sequence[Scope], yes: bool, as_json: bool, servers: str, timeout_s: float
) -> None:
    """Forget what a group has committed for topics that none of its members reads.

    Asks first when a person is at the keyboard.
    """
    with connect(servers, timeout_s) as client:
        committed = client.run(committed_offsets(client.cluster, [name]))[name]
        if isinstance(committed, ApiError):
            raise committed
        places = sorted(place for place in committed if any(scope.covers(place) for scope in scopes))
        if not places:
            of = " or ".join(map(str, scopes))
            advice = f"`quire groups describe {name}` shows what it has committed"
            raise Failure(f"group {name} has committed nothing of {of}; {advice}.", EXIT_NOT_FOUND)
        if not yes and sys.stdin.isatty():
            confirm(f"Delete what {name} has committed of {', '.join(map(str, places))}?")
        results = client.run(forget(client.cluster, name, places))
    outcomes: list[Outcome] = []
    for place in places:
        error = results[place]
        details: dict[str, object] = {"topic": place.topic, "partition": place.partition, "deleted": error is None}
        outcomes.append((str(place), "deleted" if error is None else error, details))
    report(outcomes, as_json)
