"""Whether a node may be stopped now, and whether one that was restarted is back: decided from what the cluster says.

A restart takes something offline if a partition loses its only in-sync replica, or has fewer than min.insync.replicas
left, or if most controllers would be down. Nothing here asks a broker: `restart_view` does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quire.cli.cluster.quorum import SILENT_MS
from quire.client.admin.quorum import Quorum, QuorumMember
from quire.console.output import count, some

CAUGHT_UP_MS = 2_000
"""A node follows the metadata log if it had everything that recently."""


class PartitionView(NamedTuple):
    """`isr` are the members that every broker names and that serve; `min_isr` is the number that acks=all needs."""

    name: str
    replicas: tuple[int, ...]
    isr: frozenset[int]
    min_isr: int


@dataclass(slots=True, frozen=True)
class ClusterView:
    racks: Mapping[int, str | None]
    """The rack of every registered broker."""
    serving: frozenset[int]
    """The brokers that answer and are not fenced."""
    partitions: Sequence[PartitionView]
    quorum: Quorum | None
    """None if there is no active controller."""

    @property
    def brokers(self) -> list[int]:
        return sorted(self.racks)

    @property
    def voters(self) -> list[int]:
        return [] if self.quorum is None else sorted(voter.node_id for voter in self.quorum.voters)

    @property
    def nodes(self) -> list[int]:
        """All brokers, controllers that vote, and controllers that follow them."""
        observers = [] if self.quorum is None else [each.node_id for each in self.quorum.observers]
        return sorted({*self.brokers, *self.voters, *observers})

    @property
    def silent_voters(self) -> list[int]:
        """Controllers that vote and are down: they do not fetch, or their broker does not serve."""
        if self.quorum is None:
            return []
        now_ms = max(voter.last_fetch_ms for voter in self.quorum.voters)
        stopped = self.racks.keys() - self.serving
        return sorted(
            voter.node_id
            for voter in self.quorum.voters
            if now_ms - voter.last_fetch_ms > SILENT_MS or voter.node_id in stopped
        )


class Obstacle(NamedTuple):
    """Why a node must not be stopped. `kind` is a word for programs."""

    kind: str
    sentence: str
    passes: bool
    """Whether it is gone when the nodes that are down or behind are back."""
    partitions: tuple[str, ...] = ()


def obstacles(view: ClusterView, node: int) -> list[Obstacle]:
    """What the stop of a node would take offline; empty if it may be stopped."""
    return [*_of_quorum(view, node), *_of_partitions(view, node)]


def _of_quorum(view: ClusterView, node: int) -> Iterator[Obstacle]:
    if view.quorum is None:
        yield Obstacle(
            "no-controller",
            "there is no active controller, so partitions would get no other leader: start the controllers that are "
            "down first.",
            True,
        )
        return
    voters = view.quorum.voters
    silent = view.silent_voters
    if node not in view.voters or node in silent:
        return
    if len(voters) == 1:
        yield Obstacle(
            "quorum",
            f"node {node} is the only controller: until it is back, no partition gets another leader, and topics and "
            "settings cannot be changed; add controllers with `quire quorum add` to avoid that.",
            False,
        )
        return
    left = len(voters) - 1 - len(silent)
    if left <= len(voters) // 2:
        down = f" ({_nodes(silent)} down)" if silent else ""
        what = "start the others first." if silent else "add a third controller with `quire quorum add` to avoid that."
        yield Obstacle(
            "quorum",
            f"without node {node}, {left} of {len(voters)} controllers would be up{down}, which is no majority: {what}",
            bool(silent),
        )


def _of_partitions(view: ClusterView, node: int) -> Iterator[Obstacle]:
    held = [each for each in view.partitions if node in each.isr]
    alone = [each.name for each in held if len(each.replicas) == 1]
    if alone:
        yield Obstacle(
            "only-replica",
            f"{count(len(alone), 'partition')} would be offline, because node {node} has the only replica: "
            f"{some(alone)}; add replicas to survive restarts.",
            False,
            tuple(alone),
        )
    last = [each.name for each in held if len(each.replicas) > 1 and each.isr == {node}]
    if last:
        yield Obstacle(
            "last-in-sync",
            f"{count(len(last), 'partition')} would be offline, because node {node} is the only replica in sync: "
            f"{some(last)}; wait for the others, or start the brokers that are down.",
            True,
            tuple(last),
        )
    few = [each for each in held if len(each.isr) > 1 and len(each.isr) - 1 < each.min_isr]
    if few:
        names = [each.name for each in few]
        waiting = any(len(each.isr) < len(each.replicas) for each in few)
        what = (
            "wait until the other replicas are in sync."
            if waiting
            else "lower min.insync.replicas, or add replicas, to survive restarts."
        )
        yield Obstacle(
            "min-isr",
            f"{count(len(few), 'partition')} would have fewer in-sync replicas than min.insync.replicas, and refuse "
            f"writes with acks=all: {some(names)}; {what}",
            waiting,
            tuple(names),
        )


def missing(view: ClusterView, node: int) -> list[str]:
    """What a node that was restarted still lacks, each a few words; empty if it is back."""
    found = []
    if view.quorum is not None and node not in view.nodes:
        return ["the cluster does not know it"]
    if node in view.racks and node not in view.serving:
        found.append("it does not serve yet")
    behind = [each.name for each in view.partitions if node in each.replicas and node not in each.isr]
    if behind and node in view.serving:
        found.append(f"{count(len(behind), 'partition')} not in sync ({some(behind)})")
    if view.quorum is None:
        found.append("there is no active controller")
    else:
        found += _not_followed(view.quorum, node)
    return found


def _not_followed(quorum: Quorum, node: int) -> Iterator[str]:
    leader = next((each for each in quorum.voters if each.node_id == quorum.leader_id), None)
    for member in (*quorum.voters, *quorum.observers):
        if member.node_id == node and leader is not None and not _has_caught_up(member, leader):
            yield "it has not caught up with the metadata log"
            return


def _has_caught_up(member: QuorumMember, leader: QuorumMember) -> bool:
    return member.lag == 0 or leader.last_caught_up_ms - member.last_caught_up_ms < CAUGHT_UP_MS


def next_to_restart(view: ClusterView, left: Sequence[int]) -> int:
    """The active controller comes last, because every other order moves it twice or more."""
    active = None if view.quorum is None else view.quorum.leader_id
    return next((node for node in left if node != active), left[0])


def _nodes(ids: Sequence[int]) -> str:
    names = ", ".join(str(each) for each in ids)
    return f"node {names} is" if len(ids) == 1 else f"nodes {names} are"
