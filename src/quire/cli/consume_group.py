"""`quire consume --group`: reads as a member of a group, and leaves it in order, however reading ends."""

from contextlib import suppress

from quire.cli.record_printer import Printer
from quire.client.errors import ClientError
from quire.client.group_consumer import GroupConsumer
from quire.client.offsets import LATEST, TopicPartition, list_offsets
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError

PATIENCE_MS = 5_000.0
"""How long leaving may take when somebody wants to be gone."""


def read_as_member(
    client: BlockingClient, member: GroupConsumer, printer: Printer, *, follow: bool, read_committed: bool
) -> None:
    """Prints until there is enough, or until it comes to the end of what it was given, unless it follows."""
    member.start()
    try:
        _read(client, member, printer, follow, read_committed)
    except BaseException:
        with suppress(ApiError, ClientError):
            client.run(member.close(), PATIENCE_MS)
        raise
    client.run(member.close())


def _read(client: BlockingClient, member: GroupConsumer, printer: Printer, follow: bool, read_committed: bool) -> None:
    ends: dict[TopicPartition, int] = {}
    while not printer.full:
        if not follow:
            _find_ends(client, member, ends, read_committed)
            positions = member.positions
            if positions and all(place in ends and offset >= ends[place] for place, offset in positions.items()):
                return
        client.loop.run_until(member.arrival())
        for fetched in member.poll():
            member.done_with(fetched.place, printer.show(fetched, ends.get(fetched.place)))


def _find_ends(
    client: BlockingClient, member: GroupConsumer, ends: dict[TopicPartition, int], read_committed: bool
) -> None:
    """Where each partition ended when it became this member's, but for those where it is beyond the end.

    There the group has committed what the partition does not have any more, and reading is about to begin elsewhere.
    """
    beyond: list[TopicPartition] = []
    while new := [place for place in member.positions if place not in ends and place not in beyond]:
        found = client.run(
            list_offsets(client.cluster, dict.fromkeys(new, LATEST), isolation_level=int(read_committed))
        )
        for place, at in found.items():
            if member.positions.get(place, 0) > at.offset:
                beyond.append(place)
            else:
                ends[place] = at.offset
