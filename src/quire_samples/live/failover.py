"""`make run NODES=3 KILL=1`: kills a broker while events are sent, and measures how long partitions are without a
leader.

the time comes              the leader of a busy partition is killed with SIGKILL
every partition is led      by another broker: seen a few times a second
every replica is in sync    the broker was started again, and has copied what it missed
"""

import time
from collections.abc import Callable

from quire.client.admin.topics import describe_topics
from quire.client.errors import ClientError
from quire.client.metadata import Partition
from quire.client.shell_blocking import BlockingClient
from quire.console.output import count
from quire.protocol.errors import ApiError
from quire_samples.live.waiting import run_for

LOOK_EVERY_MS = 20.0
LEADERS_WITHIN_S = 10.0
IN_SYNC_WITHIN_S = 60.0


class Failover:
    def __init__(self, at_s: float, topic: str, kill: Callable[[int], None]) -> None:
        """`at_s`: when the leader of the topic's first partition is killed."""
        self.killed: int | None = None
        self.led_after_s: float | None = None
        self.in_sync_after_s: float | None = None
        self._at_s = at_s
        self._topic = topic
        self._kill = kill
        self._killed_at_s = 0.0
        self._led = 0
        """How many partitions the broker led."""

    @property
    def is_over(self) -> bool:
        """The broker was killed, and is in sync again or does not get there."""
        if self.killed is None:
            return False
        return self.in_sync_after_s is not None or time.monotonic() - self._killed_at_s > IN_SYNC_WITHIN_S

    def advance(self, client: BlockingClient, elapsed_s: float) -> list[str]:
        """Takes the steps that are due; returns a line for each event since the last call."""
        if self.killed is None:
            return self._strike(client) if elapsed_s >= self._at_s else []
        if self.in_sync_after_s is not None:
            return []
        partitions = _partitions(client)
        if not partitions or any(len(each.isr) < len(each.replicas) for each in partitions):
            return []
        self.in_sync_after_s = time.monotonic() - self._killed_at_s
        return [f"broker {self.killed} is back, and in sync {self.in_sync_after_s:.1f} s after it was killed"]

    def _strike(self, client: BlockingClient) -> list[str]:
        client.run(client.cluster.refresh(None))
        leader = client.cluster.metadata.leader(self._topic, 0)
        if leader is None:
            return []  # The senders have not created the topic yet.
        self._led = sum(each.leader == leader for each in _partitions(client))
        self._kill(leader)
        self._killed_at_s = time.monotonic()
        self.killed = leader
        while self.led_after_s is None and time.monotonic() < self._killed_at_s + LEADERS_WITHIN_S:
            run_for(client, LOOK_EVERY_MS)
            partitions = _partitions(client)
            if partitions and not any(each.leader in (leader, -1) for each in partitions):
                self.led_after_s = time.monotonic() - self._killed_at_s
        return [self.summary()]

    def summary(self) -> str:
        """What has happened to the leaders, in one sentence."""
        if self.killed is None:
            return "no broker was killed"
        led = f"broker {self.killed} was killed (SIGKILL), which led {count(self._led, 'partition')}"
        if self.led_after_s is None:
            return f"{led}; some had no other leader after {LEADERS_WITHIN_S:.0f} s"
        return f"{led}; all had another leader after {self.led_after_s:.2f} s"


def _partitions(client: BlockingClient) -> list[Partition]:
    """Of all topics; none if no broker answers in this moment."""
    try:
        topics = client.run(describe_topics(client.cluster)).values()
    except (ApiError, ClientError):
        return []
    return [each for topic in topics if not isinstance(topic, ApiError) for each in topic.partitions.values()]
