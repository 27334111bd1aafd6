"""`quire consume --group`: reads as a member of a group, and leaves the group however reading ends."""

from contextlib import suppress

from quire.cli.records.record_printer import Printer
from quire.client.errors import ClientError
from quire.client.group_consumer import GroupConsumer
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError

PATIENCE_MS = 5_000.0
"""How long leaving the group may take after Ctrl-C or SIGTERM."""


def read_as_member(
    client: BlockingClient, member: GroupConsumer, printer: Printer, *, follow: bool, read_committed: bool
) -> list[TopicPartition]:
    """Prints until `printer` has enough or, unless it follows, to the end of the assigned partitions.

    Returns the partitions for which the group has no committed offset. Nothing is committed before the first record is
    printed: otherwise the offsets of a new group that begins at the end, or of a filter that matches nothing, would be
    behind records that no user has seen.
    """
    member.commits = False
    member.start()
    try:
        _read(client, member, printer, follow, read_committed)
    except BaseException:
        _allow_commits(member, printer)  # Ctrl-C may come between the first record and what follows it
        with suppress(ApiError, ClientError):
            client.run(member.close(), PATIENCE_MS)
        raise
    new = member.uncommitted
    client.run(member.close())
    return new


def _read(client: BlockingClient, member: GroupConsumer, printer: Printer, follow: bool, read_committed: bool) -> None:
    ends: dict[TopicPartition, int] = {}
    while not printer.full:
        if not follow:
            _find_ends(client, member, ends, read_committed)
            positions = member.positions
            if positions and all(
                partition in ends and offset >= ends[partition] for partition, offset in positions.items()
            ):
                return
        client.loop.run_until(member.arrival())
        for fetched in member.poll():
            member.done_with(fetched.topic_partition, printer.show(fetched, ends.get(fetched.topic_partition)))
            _allow_commits(member, printer)


def _allow_commits(member: GroupConsumer, printer: Printer) -> None:
    member.commits = printer.printed > 0


def _find_ends(
    client: BlockingClient, member: GroupConsumer, ends: dict[TopicPartition, int], read_committed: bool
) -> None:
    """Where each partition ended when it was assigned to this member, without those whose position is beyond the end.

    There the committed offset no longer exists, and reading is about to restart at another one.
    """
    beyond: list[TopicPartition] = []
    while new := [partition for partition in member.positions if partition not in ends and partition not in beyond]:
        found = client.run(
            list_offsets(client.cluster, dict.fromkeys(new, LATEST), isolation_level=int(read_committed))
        )
        for partition, at in found.items():
            if member.positions.get(partition, 0) > at.offset:
                beyond.append(partition)
            else:
                ends[partition] = at.offset
