"""The partitions of each broker: an index of the image, for elections when the broker fails, stops or returns."""

from collections.abc import Iterable, Iterator


class BrokerReplicas:
    __slots__ = ("_by_broker",)

    def __init__(self) -> None:
        self._by_broker: dict[int, dict[bytes, dict[int, None]]] = {}
        """Dictionaries are used as sets: they keep their order, so that a run of the simulator repeats exactly."""

    def add(self, topic_id: bytes, index: int, replicas: Iterable[int]) -> None:
        for broker_id in replicas:
            self._by_broker.setdefault(broker_id, {}).setdefault(topic_id, {})[index] = None

    def remove(self, topic_id: bytes, index: int, replicas: Iterable[int]) -> None:
        for broker_id in replicas:
            topics = self._by_broker[broker_id]
            indexes = topics.get(topic_id, {})
            indexes.pop(index, None)
            if not indexes:
                topics.pop(topic_id, None)

    @property
    def broker_ids(self) -> list[int]:
        """Of brokers that have or had replicas, registered or not, in order."""
        return sorted(self._by_broker)

    def of(self, broker_id: int) -> Iterator[tuple[bytes, int]]:
        """Topic id and partition of each replica. Replicas may come and go in between; new ones may be left out."""
        topics = self._by_broker.get(broker_id, {})
        for topic_id in list(topics):
            for index in list(topics.get(topic_id, ())):
                yield topic_id, index
