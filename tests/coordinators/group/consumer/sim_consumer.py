"""A consumer of the newer protocol for random schedules: what it knows, what it owns, and what it sends next."""

import re
from dataclasses import dataclass, field

from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordinators.group.consumer.consumer_shard import ConsumerShard, assigned, beat, join

SESSION_MS = 45_000
Partitions = set[tuple[bytes, int]]


@dataclass
class SimConsumer:
    """Behaves like a client: it sends one request at a time, revokes partitions when it is told to, and confirms
    that."""

    name: str
    topics: tuple[str, ...]
    regex: str | None
    instance_id: str | None
    rebalance_timeout_ms: int
    member_id: str = ""
    epoch: int = 0
    owned: Partitions = field(default_factory=set)
    told: Partitions = field(default_factory=set)
    unconfirmed: bool = False
    new_topics: tuple[str, ...] | None = None
    full: bool = True
    """After an error it sends all fields."""
    alive_until_ms: float = 0.0
    incarnation: int = 0

    def reads(self, topic: str) -> bool:
        return topic in self.topics or (self.regex is not None and re.fullmatch(self.regex, topic) is not None)

    def next_request(self) -> ConsumerGroupHeartbeatRequest:
        if self.epoch == 0:
            request = join(self.member_id, *self.topics, instance_id=self.instance_id)
            request.rebalance_timeout_ms = self.rebalance_timeout_ms
            if self.regex is not None:
                request.subscribed_topic_regex = self.regex
            return request
        by_topic: dict[bytes, set[int]] = {}
        for topic_id, partition in self.owned:
            by_topic.setdefault(topic_id, set()).add(partition)
        says_owned = self.full or self.unconfirmed
        request = beat(self.member_id, self.epoch, by_topic if says_owned else None, instance_id=self.instance_id)
        if self.full or self.new_topics is not None:
            request.subscribed_topic_names = list(self.topics)
        if self.full:
            request.rebalance_timeout_ms = self.rebalance_timeout_ms
        return request

    def exchange(self, shard: ConsumerShard, *, gives_up: bool = True) -> None:
        """Sends a request and receives the response; neither is lost."""
        if gives_up and not self.owned <= self.told:
            self.owned &= self.told
            self.unconfirmed = True
        sent_ms = shard.clock.monotonic_ms()
        answer = shard.heartbeat(self.next_request())
        if isinstance(answer, ApiError):
            self._refused(answer)
            return
        self.epoch = answer.member_epoch
        self.alive_until_ms = sent_ms + SESSION_MS
        self.full, self.new_topics, self.unconfirmed = False, None, False
        told = assigned(answer)
        if told is not None:
            self.told = {(topic_id, partition) for topic_id, numbers in told.items() for partition in numbers}
            self.owned |= self.told
            self.unconfirmed = True

    def _refused(self, error: ApiError) -> None:
        if error.code is ErrorCode.UNRELEASED_INSTANCE_ID:
            return
        assert error.code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.GROUP_ID_NOT_FOUND,
        ), error.message
        self.lose_everything()

    def lose_everything(self) -> None:
        self.epoch = 0
        self.owned, self.told = set(), set()
        self.unconfirmed, self.full = False, True
