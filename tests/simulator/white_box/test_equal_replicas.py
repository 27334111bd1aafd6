"""Three constructed replicas after the last fault: each difference between their logs is found."""

from types import SimpleNamespace
from typing import cast

import pytest

from quire.metadata.image import ClusterImage, TopicImage
from quire.metadata.partition_image import PartitionImage
from quire.protocol.records import ControlRecordType, Record, build_batch
from quire.protocol.records.control import build_control_batch
from simulator.life import Life
from simulator.machine import Machine, MachineState
from simulator.white_box.equal_replicas import SAME_BATCHES, SAME_END, SAME_VALUES, EqualReplicas
from tests.simulator.expected_violation import expect
from tests.simulator.white_box.logs import disk_of, plain, replica

TOPIC_ID = bytes(16)
PRODUCER = 7
FIRST, SECOND, THIRD = plain((0, 1, [b"a1", b"b1"])), plain((2, 1, [b"c1"])), plain((3, 2, [b"a2"]))


class Replicas:
    """The replicas of one partition on three nodes. Each is changed before `check`."""

    def __init__(self, *, compact: bool = False) -> None:
        self.compact = compact
        self.lost_records = False
        self.image = PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=2)
        self.logs = {number: [FIRST, SECOND, THIRD] for number in (1, 2, 3)}
        self.starts = dict.fromkeys((1, 2, 3), 0)
        self.ends = dict.fromkeys((1, 2, 3), 4)
        self.high_watermarks = dict.fromkeys((1, 2, 3), 4)

    def equal(self) -> EqualReplicas:
        ever_lost = [(TOPIC_ID, 0)] if self.lost_records else []
        return EqualReplicas([self._machine(number) for number in (1, 2, 3)], ever_lost)

    def check(self) -> int:
        """How many replicas it has compared with another one."""
        equal = self.equal()
        equal.check()
        return equal.compared

    def _machine(self, number: int) -> Machine:
        partition = replica(
            self.ends[number],
            high_watermark=self.high_watermarks[number],
            start_offset=self.starts[number],
            compact=self.compact,
        )
        partition.topic_id, partition.index = TOPIC_ID, 0
        image = ClusterImage(topics_by_id={TOPIC_ID: TopicImage("t", TOPIC_ID, {0: self.image})})
        fields = SimpleNamespace(
            name=f"node-{number}",
            state=MachineState.SERVING,
            life=Life(f"node-{number}", 1),
            disk=disk_of(self.logs[number]),
            node=SimpleNamespace(partitions=[partition], image=image),
        )
        return cast(Machine, fields)


def value(offset: int, key: bytes, content: bytes | None, *, transactional: bool = False) -> bytes:
    return bytes(
        build_batch(
            [Record(0, 0, key, content)],
            base_offset=offset,
            leader_epoch=1,
            producer_id=PRODUCER if transactional else -1,
            transactional=transactional,
        )
    )


def marker(offset: int, kind: ControlRecordType) -> bytes:
    return bytes(build_control_batch([(kind, b"")], 0, base_offset=offset, leader_epoch=1, producer_id=PRODUCER))


def test_equal_replicas_are_fine() -> None:
    assert Replicas().check() == 2


@pytest.mark.parametrize("compact", [False, True])
def test_a_batch_that_one_replica_lacks_is_found(compact: bool) -> None:
    replicas = Replicas(compact=compact)
    replicas.logs[3] = [FIRST, THIRD]
    with expect(SAME_VALUES if compact else SAME_BATCHES):
        replicas.check()


@pytest.mark.parametrize(
    "other",
    [
        plain((3, 1, [b"a2"])),
        plain((3, 2, [b"a3"])),
        bytes(build_batch([Record(0, 0, b"a", b"a2")], base_offset=3, leader_epoch=2, producer_id=1)),
    ],
    ids=["epoch", "content", "producer"],
)
def test_another_last_batch_is_found(other: bytes) -> None:
    replicas = Replicas()
    replicas.logs[2] = [FIRST, SECOND, other]
    with expect(SAME_BATCHES):
        replicas.check()


def test_logs_are_compared_from_the_latest_start_on() -> None:
    replicas = Replicas()
    replicas.logs[3], replicas.starts[3] = [SECOND, THIRD], 2
    assert replicas.check() == 2
    replicas.starts[3] = 1
    with expect(SAME_BATCHES):
        replicas.check()


def test_replicas_must_end_alike_with_everything_committed() -> None:
    for ends, high_watermarks in (((4, 4, 3), (3, 3, 3)), ((4, 4, 4), (4, 3, 4)), ((4, 4, 4), (3, 3, 3))):
        replicas = Replicas()
        replicas.ends = dict(zip((1, 2, 3), ends, strict=True))
        replicas.high_watermarks = dict(zip((1, 2, 3), high_watermarks, strict=True))
        assert not replicas.equal().end_alike
        with expect(SAME_END):
            replicas.check()


def test_all_replicas_must_be_there_and_in_the_isr() -> None:
    replicas = Replicas()
    assert replicas.equal().end_alike
    for image in (
        replicas.image._replace(isr=(1, 2)),
        replicas.image._replace(leader=-1),
        replicas.image._replace(replicas=(1, 2, 4), isr=(1, 2, 4)),
    ):
        replicas.image = image
        with expect(SAME_END):
            replicas.check()


def test_compacted_replicas_may_lack_what_is_superseded_but_no_last_value() -> None:
    replicas = Replicas(compact=True)
    replicas.logs[2] = [plain((1, 1, [b"b1"])), SECOND, THIRD]
    assert replicas.check() == 2
    replicas.logs[2] = [FIRST, SECOND]
    with expect(SAME_VALUES):
        replicas.check()


def test_after_a_loss_a_compacted_replica_may_lack_a_value_but_not_have_another() -> None:
    replicas = Replicas(compact=True)
    replicas.lost_records = True
    replicas.logs[2] = [SECOND, THIRD]
    assert replicas.check() == 2
    replicas.logs[2] = [plain((0, 1, [b"a1", b"b2"])), SECOND, THIRD]
    with expect(SAME_VALUES):
        replicas.check()


def test_a_compacted_replica_may_lack_a_deletion_but_not_have_what_was_deleted() -> None:
    replicas = Replicas(compact=True)
    replicas.logs[1] = replicas.logs[2] = [value(0, b"k", b"v"), value(1, b"k", None), THIRD]
    replicas.logs[3] = [THIRD]
    assert replicas.check() == 2
    replicas.logs[3] = [value(0, b"k", b"v"), THIRD]
    with expect(SAME_VALUES):
        replicas.check()


def test_a_compacted_replica_may_lack_what_was_aborted_but_not_what_was_committed() -> None:
    for kind, is_fine in ((ControlRecordType.ABORT, True), (ControlRecordType.COMMIT, False)):
        replicas = Replicas(compact=True)
        replicas.logs[1] = [value(0, b"k", b"old"), value(1, b"k", b"new", transactional=True), marker(2, kind), THIRD]
        replicas.logs[2] = replicas.logs[1]
        replicas.logs[3] = [value(0, b"k", b"old"), THIRD]
        if is_fine:
            assert replicas.check() == 2
        else:
            with expect(SAME_VALUES):
                replicas.check()
