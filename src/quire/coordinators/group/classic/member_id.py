"""The ids that the coordinator gives to members of the classic protocol: what a client is known as, and a UUID."""

from uuid import UUID

from quire.seams import Random

LONGEST_NAME = 255
"""Characters of a client's name that its member id begins with. The id must fit into answers and records, which hold
32,767 bytes of a string: one member with a longer id would keep its whole group from being told anything. And ids that
are given out must not become a way to have much remembered."""


def new_member_id(known_as: str, random: Random) -> str:
    return f"{known_as[:LONGEST_NAME]}-{UUID(bytes=random.uuid())}"
