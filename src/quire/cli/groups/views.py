"""Formats a group for people and for programs: committed offsets, lag and members."""

from collections.abc import Sequence

from quire.cli.scopes import by_topic, in_one_cell
from quire.client.admin.group_descriptions import Group, Member
from quire.client.admin.group_lag import GroupDetail, GroupPartition
from quire.console.output import count, format_table, title_of
from quire.console.printable import printable

PARTITION_TITLES = ("topic", "partition", "committed", "end", "lag", "client", "host", "member")
MEMBER_TITLES = ("member", "instance", "client", "host", "epoch", "partitions", "reads", "to come")

is_title = title_of(PARTITION_TITLES, MEMBER_TITLES)


def headline(detail: GroupDetail) -> str:
    group = detail.group
    protocol = f"{group.protocol} protocol" + (f" ({printable(group.assignor)})" if group.assignor else "")
    return (
        f"group {printable(group.group_id)}  {group.state}  {count(len(group.members), 'member')}  "
        f"lag {detail.lag:,}{_without_commit(detail)}  {protocol}  coordinator {group.coordinator}"
    )


def _without_commit(detail: GroupDetail) -> str:
    """A reader that never commits has no lag, and would look like one that has read everything."""
    without = detail.uncommitted
    if not without.partitions:
        return ""
    return f" (without a commit: {count(without.partitions, 'partition')} with {count(without.records, 'record')})"


def partitions_table(partitions: Sequence[GroupPartition]) -> str:
    if not partitions:
        return "no offset is committed, and no member has partitions"
    return format_table(
        PARTITION_TITLES,
        [
            (
                found.topic_partition.topic,
                found.topic_partition.partition,
                None if found.committed is None else found.committed.offset,
                found.end_offset,
                found.lag,
                None if found.member is None else found.member.client_id,
                None if found.member is None else _host(found.member),
                None if found.member is None else found.member.member_id,
            )
            for found in partitions
        ],
    )


def members_table(group: Group) -> str:
    if not group.members:
        return "no member"
    return format_table(
        MEMBER_TITLES,
        [
            (
                member.member_id,
                member.instance_id,
                member.client_id,
                _host(member),
                member.epoch,
                len(member.assignment),
                in_one_cell(member.assignment),
                None if member.target is None or member.target == member.assignment else in_one_cell(member.target),
            )
            for member in group.members
        ],
    )


def group_json(detail: GroupDetail) -> dict[str, object]:
    group = detail.group
    return {
        "name": group.group_id,
        "state": group.state,
        "protocol": group.protocol,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "epoch": group.epoch,
        "target_epoch": group.target_epoch,
        "lag": detail.lag,
        "uncommitted": detail.uncommitted._asdict(),
        "partitions": [
            {
                "topic": found.topic_partition.topic,
                "partition": found.topic_partition.partition,
                "committed": None if found.committed is None else found.committed.offset,
                "leader_epoch": None if found.committed is None else found.committed.leader_epoch,
                "metadata": None if found.committed is None else found.committed.metadata,
                "end_offset": found.end_offset,
                "lag": found.lag,
                "member": None if found.member is None else found.member.member_id,
            }
            for found in detail.partitions
        ],
        "members": [
            {
                "id": member.member_id,
                "instance": member.instance_id,
                "client": member.client_id,
                "host": _host(member),
                "epoch": member.epoch,
                "subscription": member.subscription,
                "pattern": member.pattern,
                "assignment": by_topic(member.assignment),
                "target": None if member.target is None else by_topic(member.target),
            }
            for member in group.members
        ],
    }


def _host(member: Member) -> str:
    return member.host.removeprefix("/")  # Java's notation for an address without a host name
