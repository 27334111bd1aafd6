"""A broker with very many partitions is fenced and unfenced in portions, and unfinished portions are completed
later.
"""

from collections.abc import Callable, Sequence

import pytest

from quire.controller import command_runner
from quire.protocol.errors import ErrorCode
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from quire.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from quire.protocol.messages.metadata_records import BrokerRegistrationChangeRecord
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest
from quire.raft.snapshot_taker import VersionedRecord
from tests.controller.sim_controller import SimController, sender

PER_TURN = 100
PARTITIONS = 450
BROKER = 2


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_runner, "_TURN_PORTIONS", PER_TURN)


class Cluster:
    """The controller, and broker 2 with many partitions on another node."""

    def __init__(self) -> None:
        self.sim = SimController().start()
        self.epoch = self.sim.register(BROKER)
        assert not self.beat()
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=[BROKER]) for index in range(PARTITIONS)
        ]
        topic = CreatableTopic(name="orders", num_partitions=-1, replication_factor=-1, assignments=assignments)
        created = self.sim.settle(self.sim.controller.create_topics(CreateTopicsRequest(topics=[topic])))
        assert created.topics[0].error_code == ErrorCode.NONE
        self.batches: list[list[VersionedRecord]] = []
        self._append = self.sim.replica.log.append
        self.sim.replica.log.append = self._counted  # type: ignore[method-assign]

    def _counted(self, records: Sequence[VersionedRecord], now_ms: int) -> int:
        self.batches.append(list(records))
        return self._append(records, now_ms)

    def beat(self, **fields: object) -> bool:
        """Whether the broker is fenced."""
        return self.sim.heartbeat(BROKER, self.epoch, **fields).is_fenced

    def lose_broker(self) -> None:
        self.sim.close_connection(BROKER)
        self.sim.run()

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]

    @property
    def leaders(self) -> dict[int, int]:
        return leaders(self.sim)


def leaders(sim: SimController) -> dict[int, int]:
    """How many partitions each broker leads."""
    found: dict[int, int] = {}
    for partition in sim.image.topics_by_name["orders"].partitions.values():
        found[partition.leader] = found.get(partition.leader, 0) + 1
    return found


def heartbeat_of(cluster: Cluster) -> BrokerHeartbeatRequest:
    offset = cluster.sim.image.offset
    return BrokerHeartbeatRequest(broker_id=BROKER, broker_epoch=cluster.epoch, current_metadata_offset=offset)


class NoTurns:
    """For a controller that ends before its next turn."""

    def __len__(self) -> int:
        return 0

    def add(self, piece: Callable[[], None]) -> None:
        pass


def end_after_first_turn(sim: SimController) -> None:
    assert sim.replica.active is not None
    sim.replica.active._commands._turns = NoTurns()  # type: ignore[assignment]


def test_a_broker_is_fenced_in_portions() -> None:
    cluster = Cluster()
    cluster.lose_broker()
    assert cluster.sizes == [PER_TURN, PER_TURN, PER_TURN, PER_TURN, PARTITIONS + 1 - 4 * PER_TURN]
    first, _ = cluster.batches[0][0]
    assert isinstance(first, BrokerRegistrationChangeRecord) and first.fenced == 1
    assert cluster.leaders == {-1: PARTITIONS}


def test_other_requests_run_between_the_portions() -> None:
    cluster = Cluster()
    cluster.sim.close_connection(BROKER)
    cluster.sim.run_until(lambda: bool(cluster.batches))
    answered = cluster.sim.controller.create_topics(
        CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)])
    )
    assert cluster.sim.settle(answered).topics[0].error_code == ErrorCode.NONE
    names = [type(record).__name__ for batch in cluster.batches for record, _ in batch]
    assert PER_TURN <= names.index("TopicRecord") < len(names) - PER_TURN


def test_a_broker_is_unfenced_in_portions_and_answered_after_the_last() -> None:
    cluster = Cluster()
    cluster.lose_broker()
    cluster.batches.clear()
    assert not cluster.beat()
    assert len(cluster.sizes) == 5 and max(cluster.sizes) == PER_TURN
    assert cluster.leaders == {BROKER: PARTITIONS}


def test_a_broker_that_is_unfenced_while_it_is_being_fenced_leads_all_its_partitions() -> None:
    cluster = Cluster()
    cluster.sim.close_connection(BROKER)
    cluster.sim.run_until(lambda: bool(cluster.batches))
    assert not cluster.beat()
    assert cluster.leaders == {BROKER: PARTITIONS}


def test_a_broker_that_is_fenced_while_it_is_being_unfenced_leads_nothing() -> None:
    cluster = Cluster()
    cluster.lose_broker()
    cluster.batches.clear()
    active = cluster.sim.replica.active
    assert active is not None
    unfenced = active.broker_heartbeat(heartbeat_of(cluster))
    assert len(cluster.batches) == 1 and not unfenced.done
    active._sessions._fence(BROKER, "a test")
    cluster.sim.run()
    assert unfenced.done
    assert cluster.leaders == {-1: PARTITIONS}


def test_the_next_controller_finishes_what_was_left_undone() -> None:
    cluster = Cluster()
    end_after_first_turn(cluster.sim)
    cluster.lose_broker()
    assert cluster.sim.image.brokers[BROKER].fenced
    assert cluster.leaders == {-1: PER_TURN - 1, BROKER: PARTITIONS - PER_TURN + 1}
    again = SimController(cluster.sim.disk.kill(), seed=2).open()
    assert leaders(again) == {-1: PARTITIONS}


def test_the_next_controller_elects_leaders_that_were_left_out() -> None:
    cluster = Cluster()
    cluster.lose_broker()
    end_after_first_turn(cluster.sim)
    active = cluster.sim.replica.active
    assert active is not None
    active.broker_heartbeat(heartbeat_of(cluster))
    cluster.sim.run()
    assert cluster.leaders == {BROKER: PER_TURN - 1, -1: PARTITIONS - PER_TURN + 1}
    again = SimController(cluster.sim.disk.kill(), seed=2)
    again.network.host("node").listen("localhost", 9092, lambda _transport: None)
    again.open()
    assert leaders(again) == {BROKER: PARTITIONS}


def test_a_new_incarnation_is_registered_after_the_old_one_is_fenced_in_portions() -> None:
    cluster = Cluster()
    cluster.sim.heartbeat(BROKER, cluster.epoch)
    old_directories = list(cluster.sim.image.brokers[BROKER].log_dirs)
    assert cluster.sim.replica.active is not None
    cluster.sim.replica.active._sessions.forget(BROKER)
    request = cluster.sim.registration(BROKER, log_dirs=old_directories)
    response = cluster.sim.settle(cluster.sim.controller.register_broker(request, sender(BROKER)))
    assert response.error_code == ErrorCode.NONE
    assert max(cluster.sizes) == PER_TURN and len(cluster.sizes) == 5
    last = cluster.batches[-1][-1][0]
    assert type(last).__name__ == "RegisterBrokerRecord"
    assert response.broker_epoch == cluster.sim.image.offset
    assert cluster.leaders == {-1: PARTITIONS}


def test_a_broker_is_unregistered_in_portions() -> None:
    cluster = Cluster()
    response = cluster.sim.settle(cluster.sim.controller.unregister_broker(UnregisterBrokerRequest(broker_id=BROKER)))
    assert response.error_code == ErrorCode.NONE
    assert max(cluster.sizes) == PER_TURN and len(cluster.sizes) == 5
    assert BROKER not in cluster.sim.image.brokers
    assert cluster.leaders == {-1: PARTITIONS}


def test_a_broker_that_stops_hands_over_in_portions() -> None:
    cluster = Cluster()
    stopping = cluster.sim.heartbeat(BROKER, cluster.epoch, want_shut_down=True)
    assert not stopping.should_shut_down
    assert max(cluster.sizes) == PER_TURN and len(cluster.sizes) == 5
    assert cluster.leaders == {-1: PARTITIONS}
