"""Member ids of the classic protocol: the client id or group.instance.id, and a UUID."""

from uuid import UUID

from quire.seams import Random

LONGEST_NAME = 255
"""Characters of the name that the member id keeps. The id must fit into responses and records, which hold strings of
32,767 bytes: a longer id would block its whole group. The limit also bounds the memory of pending members."""


def new_member_id(known_as: str, random: Random) -> str:
    return f"{known_as[:LONGEST_NAME]}-{UUID(bytes=random.uuid())}"
