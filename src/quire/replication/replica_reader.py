"""What a leader reports to the sessions of its followers. `quire.node.replicas.ReplicaSession` implements it."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quire.replication.leader_role import LeaderRole


class ReplicaReader(Protocol):
    def has_more(self, leader: "LeaderRole") -> None:
        """Records were appended, or the leadership has ended: a fetch that waits should be answered soon.

        Called for every append, and must be cheap. It must not read or answer within this call.
        """

    def has_news(self, leader: "LeaderRole") -> None:
        """The high watermark or the start of the log has moved, which the next answer should say."""
