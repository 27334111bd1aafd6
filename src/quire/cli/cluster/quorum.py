"""`quire quorum`: the controllers that agree on the cluster's metadata; adding and removing one (KIP-853)."""

from collections.abc import Collection
from typing import Any, NamedTuple

import click

from quire.address import Address
from quire.client.admin import quorum as admin
from quire.client.admin.cluster import describe_cluster
from quire.client.errors import TimedOutError, UnsupportedError
from quire.client.servers import AddressError, parse_address
from quire.client.shell_blocking import BlockingClient
from quire.console.failure import EXIT_UNREACHABLE, Failure
from quire.console.groups import HelpfulGroup
from quire.console.options import IntRange, cluster_options, connect, json_option
from quire.console.output import Cell, format_table, print_json, title_of
from quire.console.terminal import echo
from quire.protocol import uuids
from quire.protocol.errors import ApiError

_TITLES = ("node", "kind", "log end", "lag", "caught up", "directory", "address")
IS_TITLE = title_of(_TITLES)
PATIENCE_MS = 3_000.0
"""Without a leader the quorum does not answer; what the brokers know is still shown."""
SILENT_MS = 4_000
"""A voter that has not fetched for so long is down: followers fetch at least every two seconds."""


class Controller(NamedTuple):
    """`4@host:9093`, with or without `:DIRECTORY_ID`."""

    id: int
    address: Address
    directory_id: bytes | None


class ControllerType(click.ParamType[Controller]):
    name = "ID@HOST:PORT[:DIRECTORY]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Controller:
        if isinstance(value, Controller):
            return value
        id_, at, rest = str(value).partition("@")
        address, colon, last = rest.rpartition(":")
        try:
            directory_id = uuids.from_text(last) if colon and not last.isdecimal() else None
            found = parse_address(rest if directory_id is None else address)
        except (ValueError, AddressError):
            found = None
        if not at or not id_.isdecimal() or found is None:
            self.fail(f"{value!r} is not {self.name}, such as 4@host-4:9093", param, ctx)
        return Controller(int(id_), found, directory_id)


class DirectoryId(click.ParamType[bytes]):
    name = "UUID"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        try:
            return value if isinstance(value, bytes) else uuids.from_text(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.group(cls=HelpfulGroup, epilog="\b\nExample:\n  quire quorum describe")
def quorum() -> None:
    """Show the metadata quorum, and add or remove controllers that vote."""


@quorum.command(epilog="\b\nExamples:\n  quire quorum describe\n  quire quorum describe -b broker-1:9092 --json")
@json_option
@cluster_options
def describe(as_json: bool, servers: str, timeout_s: float) -> None:
    """Show the leader, the voters and the observers of the metadata log."""
    with connect(servers, timeout_s) as client:
        found = _described(client)
    if as_json:
        print_json(quorum_json(found))
    else:
        echo(quorum_view(found), headings=IS_TITLE)


@quorum.command(
    epilog="""\b
Examples:
  quire quorum add 4@host-4:9093

\b
First format the controller with --no-initial-controllers and start it: it follows the metadata log
as an observer, and `quire quorum describe` shows it. Then add it, with the address of its controller
listener."""
)
@click.argument("controller", type=ControllerType())
@json_option
@cluster_options
def add(controller: Controller, as_json: bool, servers: str, timeout_s: float) -> None:
    """Add a controller that follows the metadata log to the voters."""
    with connect(servers, timeout_s) as client:
        cluster_id = client.run(describe_cluster(client.cluster)).cluster_id
        found = _described(client)
        directory_id = controller.directory_id
        _check_may_join(found, controller.id)
        if directory_id is None:
            directory_id = admin.member_of(found.observers, controller.id, None, "an observer").directory_id
        listener = next((each.listener for voter in found.voters for each in voter.addresses), "CONTROLLER")
        address = admin.NamedAddress(listener, controller.address)
        client.run(
            admin.add_voter(client.cluster, controller.id, directory_id, [address], cluster_id=cluster_id),
        )
    if as_json:
        print_json({"id": controller.id, "directory_id": uuids.to_text(directory_id), "votes": True})
    else:
        echo(f"controller {controller.id}: votes, with directory {uuids.to_text(directory_id)}")


@quorum.command(
    epilog="""\b
Examples:
  quire quorum remove 2
  quire quorum remove 2 --directory-id JEXY6aqzQY-32P5TStzaFg

\b
The controller need not run. One that has lost its disk is removed, formatted with
--no-initial-controllers, started, and added again."""
)
@click.argument("node_id", metavar="ID", type=IntRange(min=0))
@click.option("--directory-id", type=DirectoryId(), help="Its directory.  [default: that of the voter]")
@json_option
@cluster_options
def remove(node_id: int, directory_id: bytes | None, as_json: bool, servers: str, timeout_s: float) -> None:
    """Remove a controller from the voters."""
    with connect(servers, timeout_s) as client:
        cluster = client.run(describe_cluster(client.cluster, with_fenced=True))
        found = _described(client)
        voter = admin.member_of(found.voters, node_id, directory_id, "a voter")
        check_others_are_a_majority(found, voter, cluster.fenced)
        client.run(admin.remove_voter(client.cluster, node_id, voter.directory_id, cluster_id=cluster.cluster_id))
    if as_json:
        print_json({"id": node_id, "directory_id": uuids.to_text(voter.directory_id), "votes": False})
    else:
        echo(f"controller {node_id}: no longer votes")


def quorum_or_none(client: BlockingClient) -> admin.Quorum | None:
    """None if there is no active controller, or if the broker does not describe its quorum."""
    try:
        return client.run(admin.describe_quorum(client.cluster), PATIENCE_MS)
    except (ApiError, UnsupportedError, TimedOutError):
        return None


def _described(client: BlockingClient) -> admin.Quorum:
    try:
        return client.run(admin.describe_quorum(client.cluster))
    except TimedOutError:
        client.run(describe_cluster(client.cluster))  # The error is that of a broker that does not answer at all.
        raise Failure(
            "there is no active controller: start the controllers that are down, or make them reach each other; "
            "`quire cluster status` shows what the brokers know.",
            EXIT_UNREACHABLE,
        ) from None


def _check_may_join(found: admin.Quorum, node_id: int) -> None:
    if any(voter.node_id == node_id for voter in found.voters):
        raise Failure(
            f"node {node_id} is a voter already; if it has lost its disk, remove its former vote first: "
            f"quire quorum remove {node_id}."
        )
    if not any(observer.node_id == node_id for observer in found.observers):
        ids = ", ".join(str(each.node_id) for each in found.observers) or "none"
        raise Failure(
            f"node {node_id} does not follow the metadata log (observers: {ids}): format it with `quire storage "
            "format --no-initial-controllers`, start it, and try again."
        )


def check_others_are_a_majority(found: admin.Quorum, removed: admin.QuorumMember, fenced: Collection[int] = ()) -> None:
    """Without a majority of those that are left, nothing is committed any more, and no voter can be added.

    A controller is down if it is silent, or if it is a broker too and fenced, which is known sooner.
    """
    others = [voter for voter in found.voters if voter != removed]
    if not others:
        raise Failure(f"controller {removed.node_id} is the only voter: add another one first.")
    now_ms = max(voter.last_fetch_ms for voter in found.voters)
    silent = [each for each in others if now_ms - each.last_fetch_ms > SILENT_MS or each.node_id in fenced]
    if len(others) - len(silent) <= len(others) // 2:
        names = ", ".join(str(voter.node_id) for voter in silent)
        raise Failure(
            f"without controller {removed.node_id}, {len(silent)} of {len(others)} voters would be down ({names}), and "
            "the quorum would have no majority: start or remove them first."
        )


def quorum_json(found: admin.Quorum) -> dict[str, object]:
    return {
        "leader_id": found.leader_id,
        "leader_epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "voters": [_member_json(member) for member in found.voters],
        "observers": [_member_json(member) for member in found.observers],
    }


def _member_json(member: admin.QuorumMember) -> dict[str, object]:
    return {
        "id": member.node_id,
        "directory_id": uuids.to_text(member.directory_id),
        "log_end_offset": member.log_end_offset,
        "lag": member.lag,
        "last_fetch_ms": member.last_fetch_ms,
        "last_caught_up_ms": member.last_caught_up_ms,
        "listeners": [
            {"name": each.listener, "host": each.address.host, "port": each.address.port} for each in member.addresses
        ],
    }


def quorum_view(found: admin.Quorum) -> str:
    leader = f"leader {found.leader_id}" if found.leader_id >= 0 else "no leader"
    first = f"{leader} in epoch {found.leader_epoch}, high watermark {found.high_watermark}"
    members = [(member, "leader" if member.node_id == found.leader_id else "voter") for member in found.voters]
    members += [(member, "observer") for member in found.observers]
    return f"{first}\n\n{format_table(_TITLES, [_row(found, member, kind) for member, kind in members])}"


def _row(found: admin.Quorum, member: admin.QuorumMember, kind: str) -> tuple[Cell, ...]:
    leader = next((each for each in found.voters if each.node_id == found.leader_id), None)
    behind_ms = None
    if leader is not None and member.last_caught_up_ms >= 0:
        behind_ms = max(0, leader.last_caught_up_ms - member.last_caught_up_ms)
    return (
        member.node_id,
        kind,
        member.log_end_offset,
        member.lag,
        None if behind_ms is None else "now" if behind_ms < 1000 else f"{behind_ms // 1000} s ago",
        uuids.to_text(member.directory_id),
        ", ".join(str(each.address) for each in member.addresses) or None,
    )
