"""The first voters of a dynamic quorum, as `kafka-storage format --initial-controllers` has them.

    1@host-1:9093:JEXY6aqzQY-32P5TStzaFg,2@host-2:9093:MvDxzVmcRsaTz33bUuRU6A

Each has a node id, the address of its controller listener, and the id that its directory is to have.
"""

import re
from collections import Counter

from quire.protocol import uuids
from quire.raft.replicas import Endpoint, ReplicaKey, Voter, VoterSet

_VOTER = re.compile(r"(?P<id>\d+)@(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:@\[\]]+)):(?P<port>\d{1,5}):(?P<directory>[^:]+)")
EXAMPLE = "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg"


class InitialVotersError(ValueError):
    """The text does not name voters; the message says why."""


def parse_initial_voters(text: str, listener: str) -> VoterSet:
    """`listener` is the name of the controllers' listener, the first of `controller.listener.names`."""
    voters = [_parse(item.strip(), listener.upper()) for item in text.split(",") if item.strip()]
    if not voters:
        raise InitialVotersError(f"it names no controller; write each as {EXAMPLE}")
    for what, values in (
        ("node id", [str(voter.key.id) for voter in voters]),
        ("directory id", [uuids.to_text(voter.key.directory_id) for voter in voters]),
        ("address", [f"{voter.endpoints[0].host}:{voter.endpoints[0].port}" for voter in voters]),
    ):
        twice = next((value for value, count in Counter(values).items() if count > 1), None)
        if twice is not None:
            raise InitialVotersError(f"it has the {what} {twice} twice; each controller has its own")
    return VoterSet(voters)


def format_initial_voters(voters: VoterSet) -> str:
    """The text of voters that have one address each."""
    texts = []
    for voter in voters:
        (endpoint,) = voter.endpoints
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        texts.append(f"{voter.key.id}@{host}:{endpoint.port}:{uuids.to_text(voter.key.directory_id)}")
    return ",".join(texts)


def _parse(item: str, listener: str) -> Voter:
    match = _VOTER.fullmatch(item)
    if match is None or not 0 < int(match["port"]) <= 65535:
        raise InitialVotersError(f"{item!r} is not ID@HOST:PORT:DIRECTORY_ID, such as {EXAMPLE}")
    try:
        directory_id = uuids.from_text(match["directory"])
    except ValueError:
        directory_id = uuids.ZERO
    if directory_id == uuids.ZERO:
        raise InitialVotersError(
            f"{match['directory']!r} in {item!r} is not a directory id; create one with `quire storage random-uuid`"
        )
    host = match["v6"] or match["host"]
    return Voter(ReplicaKey(int(match["id"]), directory_id), (Endpoint(listener, host, int(match["port"])),))
