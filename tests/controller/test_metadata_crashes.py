"""Power loss at every single disk operation of a node's metadata: every acknowledged change survives as a whole.

The same run is repeated: formatting, election, topics, settings, snapshots. In each repetition the power fails one
operation later. Everything that was acknowledged before must exist after the restart, and no change may be applied in
part.
"""

from collections.abc import Callable

import pytest

from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.controller.sim_controller import SimController

PARTITIONS = 3


class Promises:
    """The answers that clients got."""

    def __init__(self) -> None:
        self.created: dict[str, None] = {}
        self.deleting: dict[str, None] = {}
        self.deleted: dict[str, None] = {}

    def create(self, sim: SimController, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)

        def answered(response: CreateTopicsResponse) -> None:
            assert response.topics[0].error_code == 0, response.topics[0].error_message
            self.created[name] = None

        sim.controller.create_topics(CreateTopicsRequest(topics=[topic])).when_done(answered)

    def delete(self, sim: SimController, name: str) -> None:
        self.deleting[name] = None

        def answered(response: DeleteTopicsResponse) -> None:
            self.deleted[name] = None

        request = DeleteTopicsRequest(topic_names=[name])
        sim.controller.delete_topics(request).when_done(answered)

    def check(self, sim: SimController) -> None:
        image = sim.image
        for name in self.created:
            assert name in image.topics_by_name or name in self.deleting, f"{name} was lost"
        for name in self.deleted:
            assert name not in image.topics_by_name, f"{name} came back"
        for topic in image.topics_sorted():
            assert sorted(topic.partitions) == list(range(PARTITIONS)), f"{topic.name} is there by half"
            assert image.topic_configs(topic.name) == {}


def life(sim: SimController, promises: Promises) -> None:
    """Everything that writes metadata, with several requests in progress at once."""
    sim.start()
    for number in range(4):
        promises.create(sim, f"early-{number}")
    sim.run()
    promises.delete(sim, "early-1")
    sim.replica.log.take_snapshot()
    for number in range(4):
        promises.create(sim, f"late-{number}")
        sim.run(3)
    promises.delete(sim, "late-0")
    sim.run()
    sim.replica.log.take_snapshot()
    sim.run()
    promises.create(sim, "last")
    sim.heartbeat(want_shut_down=True)
    sim.heartbeat(want_shut_down=True)
    sim.replica.close()


def lost_power(disk: SimDisk, random: SimRandom) -> SimDisk:
    return disk.crash(random)


def lost_power_with_reordered_writes(disk: SimDisk, random: SimRandom) -> SimDisk:
    return disk.crash(random, reorder=True)


def was_killed(disk: SimDisk, random: SimRandom) -> SimDisk:
    return disk.kill()


@pytest.mark.parametrize("end", [lost_power, lost_power_with_reordered_writes, was_killed])
def test_answered_metadata_survives_a_crash_at_every_disk_operation(end: Callable[..., SimDisk]) -> None:
    for number in range(1, 10_000):
        random = SimRandom(f"{end.__name__} {number}")
        disk = SimDisk(random.stream("disk"), crash_at=number)
        promises = Promises()
        try:
            life(SimController(disk, seed=number), promises)
        except Crashed:
            after = SimController(end(disk, random), seed=number + 1).start()
            promises.check(after)
            after.create("afterwards", PARTITIONS)
            promises.check(SimController(after.disk.kill(), seed=number + 2).start())
        else:
            assert number > 80, "the life was too short to say anything"
            return
    raise AssertionError("it never finished")


@pytest.mark.parametrize("seed", range(40))
def test_answered_metadata_survives_any_number_of_crashes(seed: int) -> None:
    random = SimRandom(f"crashes {seed}")
    disk = SimDisk(random.stream("disk"))
    promises = Promises()
    for number in range(6):
        sim = SimController(disk, seed=1000 * seed + number).start()
        promises.check(sim)
        for count in range(random.below(6)):
            promises.create(sim, f"topic-{number}-{count}")
            sim.run(random.between(0, 15))
            if random.chance(0.3):
                sim.replica.log.take_snapshot()
        disk = sim.disk.crash(random)
    promises.check(SimController(disk, seed=seed).start())
