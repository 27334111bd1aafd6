"""Which replica leads when brokers stop and return, with and without eligible leader replicas (KIP-966)."""

from typing import Any

import pytest

from quire.config.broker_config import BrokerConfig
from quire.controller.elections import broker_left, keeps_leaders_without, settle, settle_all
from quire.controller.partition_change import ElectionRules, change_partition
from quire.metadata.image import ClusterImage
from quire.metadata.partition_image import RECOVERED, RECOVERING, PartitionImage
from quire.protocol.messages.metadata_records import PartitionChangeRecord
from quire.protocol.schema import Message
from tests.controller.images import (
    CONFIG,
    TOPIC_ID,
    after,
    broker,
    carried_out,
    cluster,
    directory,
    partition,
    setting,
    topic,
)

PLAIN = ElectionRules()
ELIGIBLE = ElectionRules(eligible_leader_replicas=True, min_insync_replicas=2)


def of_three(**fields: Any) -> PartitionImage:
    given: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1}
    return PartitionImage(**given | fields, directories=(bytes(16),) * 3)


def change(
    before: PartitionImage,
    up: tuple[int, ...],
    rules: ElectionRules = PLAIN,
    *,
    without: int | None = None,
    unclean_shutdown: bool = False,
) -> PartitionImage | None:
    """The partition afterwards; None if nothing changes."""
    record = change_partition(
        before, TOPIC_ID, 0, lambda id_: id_ in up, rules, without=without, unclean_shutdown=unclean_shutdown
    )
    return None if record is None else before.changed_by(record)


def test_a_leader_that_left_is_followed_by_the_next_in_sync_replica() -> None:
    later = change(of_three(), up=(2, 3), without=1)
    assert later is not None
    assert (later.leader, later.leader_epoch, later.isr) == (2, 1, (2, 3))


def test_a_replica_outside_the_isr_does_not_lead() -> None:
    later = change(of_three(isr=(1, 3)), up=(2, 3), without=1)
    assert later is not None and later.leader == 3


def test_a_follower_that_left_changes_the_isr_and_not_the_leader() -> None:
    later = change(of_three(), up=(1, 3), without=2)
    assert later is not None
    assert (later.leader, later.leader_epoch, later.isr) == (1, 0, (1, 3))


def test_before_3_6_a_smaller_isr_was_a_new_leader_epoch() -> None:
    later = change(of_three(), up=(1, 3), rules=ElectionRules(metadata_version=11), without=2)
    assert later is not None
    assert (later.leader, later.leader_epoch) == (1, 1)


def test_the_last_in_sync_replica_stays_in_the_isr_and_there_is_no_leader() -> None:
    later = change(of_three(isr=(1,)), up=(2, 3), without=1)
    assert later is not None
    assert (later.leader, later.isr) == (-1, (1,))
    back = change(later, up=(1, 2, 3))
    assert back is not None
    assert (back.leader, back.isr, back.leader_epoch) == (1, (1,), 2)


def test_no_replica_is_elected_unclean_unless_requested() -> None:
    alone = of_three(isr=(1,), leader=-1)
    assert change(alone, up=(2, 3)) is None
    later = change(alone, up=(2, 3), rules=ElectionRules(unclean=True))
    assert later is not None
    assert (later.leader, later.isr, later.leader_recovery_state) == (2, (2,), RECOVERING)


def test_a_partition_that_has_its_preferred_leader_is_not_changed() -> None:
    assert change(of_three(leader=2), up=(1, 2, 3)) is None


def test_below_the_minimum_a_replica_that_leaves_the_isr_stays_eligible() -> None:
    later = change(of_three(isr=(1, 2)), up=(1, 3), rules=ELIGIBLE, without=2)
    assert later is not None
    assert (later.isr, later.elr, later.last_known_elr) == ((1,), (2,), ())


def test_an_eligible_replica_can_lead_as_safely() -> None:
    later = change(of_three(isr=(), leader=-1, elr=(1, 2)), up=(2,), rules=ELIGIBLE)
    assert later is not None
    assert (later.leader, later.isr, later.elr, later.leader_recovery_state) == (2, (2,), (1,), 0)


def test_a_member_of_the_isr_leads_before_an_eligible_replica() -> None:
    """The eligible one would lead alone: the other has more than what is committed."""
    partition = of_three(isr=(1, 3), elr=(2,))
    later = change(partition, up=(2, 3), rules=ElectionRules(True, 3), without=1)
    assert later is not None
    assert (later.leader, later.isr, set(later.elr)) == (3, (3,), {1, 2})


def test_at_the_minimum_no_other_replica_is_eligible() -> None:
    later = change(of_three(isr=(1, 2), leader=-1, elr=(3,), last_known_elr=(3,)), up=(1, 2), rules=ELIGIBLE)
    assert later is not None
    assert (later.leader, later.elr, later.last_known_elr) == (1, (), ())


def test_the_only_replica_is_eligible_while_it_is_away() -> None:
    """As Kafka 4.3.1 writes it when a single broker stops."""
    rules = ElectionRules(eligible_leader_replicas=True)
    alone = PartitionImage(replicas=(1,), isr=(1,), leader=1, directories=(bytes(16),))
    away = change(alone, up=(), rules=rules, without=1)
    assert away is not None
    assert (away.leader, away.isr, away.elr, away.last_known_elr) == (-1, (), (1,), (1,))
    back = change(away, up=(1,), rules=rules)
    assert back is not None
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (1, (1,), (), ())


def test_after_an_unclean_shutdown_a_replica_is_not_eligible() -> None:
    later = change(of_three(isr=(1, 2)), up=(1,), rules=ELIGIBLE, without=2, unclean_shutdown=True)
    assert later is not None
    assert (later.isr, later.elr, later.last_known_elr) == ((1,), (), (2,))


def test_the_last_known_leader_is_elected_when_all_replicas_returned_unclean() -> None:
    rules = ElectionRules(eligible_leader_replicas=True)
    alone = PartitionImage(replicas=(1,), isr=(1,), leader=1, directories=(bytes(16),))
    away = change(alone, up=(), rules=rules, without=1, unclean_shutdown=True)
    assert away is not None
    assert (away.isr, away.elr, away.last_known_elr) == ((), (), (1,))
    back = change(away, up=(1,), rules=rules)
    assert back is not None
    assert (back.leader, back.isr, back.leader_recovery_state) == (1, (1,), RECOVERING)


def test_the_last_leader_is_remembered_also_while_a_member_of_the_isr_is_down() -> None:
    """The leader and its follower went together, and both return without what they had not flushed."""
    away = change(of_three(isr=(1, 2)), up=(), rules=ELIGIBLE, without=1)
    assert away is not None
    assert (away.leader, away.isr, away.elr, away.last_known_elr) == (-1, (2,), (1,), (1,))
    away = change(away, up=(), rules=ELIGIBLE, without=2, unclean_shutdown=True)
    assert away is not None
    assert (away.isr, away.elr, away.last_known_elr) == ((), (1,), (1,))
    away = change(away, up=(2, 3), rules=ELIGIBLE, without=1, unclean_shutdown=True)
    assert away is not None
    assert (away.leader, away.isr, away.elr, away.last_known_elr) == (-1, (), (), (1,))
    back = change(away, up=(1, 2, 3), rules=ELIGIBLE)
    assert back is not None
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (1, (1,), (), ())
    assert back.leader_recovery_state == RECOVERING


def test_the_last_leader_leads_when_the_last_eligible_replica_returns_unclean() -> None:
    """It waited for that one, and is not asked again."""
    waiting = of_three(isr=(), leader=-1, elr=(1,), last_known_elr=(2,))
    assert change(waiting, up=(2, 3), rules=ELIGIBLE) is None
    later = change(waiting, up=(2, 3), rules=ELIGIBLE, without=1, unclean_shutdown=True)
    assert later is not None
    assert (later.leader, later.isr, later.elr, later.last_known_elr) == (2, (2,), (), ())
    assert later.leader_recovery_state == RECOVERING


def test_a_leader_that_leaves_unclean_is_waited_for_and_not_one_that_lost_its_place_before() -> None:
    alone = of_three(isr=(1,), leader=1, last_known_elr=(3,))
    later = change(alone, up=(2, 3), rules=ELIGIBLE, without=1, unclean_shutdown=True)
    assert later is not None
    assert (later.leader, later.isr, later.elr, later.last_known_elr) == (-1, (), (), (1,))


def test_a_member_of_the_isr_that_leads_again_ends_the_wait_for_the_last_leader() -> None:
    away = of_three(isr=(2,), leader=-1, elr=(1,), last_known_elr=(1,))
    led = change(away, up=(2,), rules=ELIGIBLE)
    assert led is not None
    assert (led.leader, led.isr, led.elr, led.last_known_elr, led.leader_recovery_state) == (2, (2,), (1,), (), 0)


def test_a_partition_that_lost_its_leader_before_the_feature_waits_for_a_member_of_its_isr() -> None:
    alone = of_three(isr=(2,), leader=-1)
    away = change(alone, up=(1, 3), rules=ELIGIBLE, without=2, unclean_shutdown=True)
    assert away is not None
    assert (away.leader, away.isr, away.elr, away.last_known_elr) == (-1, (), (), (2,))
    back = change(away, up=(1, 2, 3), rules=ELIGIBLE)
    assert back is not None and (back.leader, back.isr) == (2, (2,))


def test_a_partition_has_recovered_when_the_leader_that_was_elected_unclean_leads_no_longer() -> None:
    rules = ElectionRules(eligible_leader_replicas=True)
    alone = PartitionImage((1,), (1,), 1, directories=(bytes(16),), leader_recovery_state=RECOVERING)
    away = change(alone, up=(), rules=rules, without=1)
    assert away is not None and away.leader_recovery_state == RECOVERED
    back = change(away, up=(1,), rules=rules)
    assert back is not None and (back.leader, back.leader_recovery_state) == (1, RECOVERED)


def changed(image: ClusterImage, changes: list[PartitionChangeRecord]) -> dict[int, tuple[int, tuple[int, ...]]]:
    later = after(image, list(changes))
    partitions = later.topics_by_name["orders"].partitions
    return {
        record.partition_id: (partitions[record.partition_id].leader, partitions[record.partition_id].isr)
        for record in changes
    }


def settled(image: ClusterImage, broker_id: int) -> list[PartitionChangeRecord]:
    records = carried_out(image, lambda later: settle(later, CONFIG, broker_id)).records
    return [record for record in records if isinstance(record, PartitionChangeRecord)]


def test_a_broker_that_left_leaves_all_its_partitions() -> None:
    image = cluster(topic(), partition(0, (1, 2)), partition(1, (2, 1)), partition(2, (2,)), brokers=2)
    assert changed(image, list(broker_left(image, CONFIG, 1))) == {0: (2, (2,)), 1: (2, (2,))}
    assert changed(image, list(broker_left(image, CONFIG, 2))) == {0: (1, (1,)), 1: (1, (1,)), 2: (-1, (2,))}


def test_a_broker_that_joined_leads_what_waited_for_it() -> None:
    image = cluster(
        topic(),
        partition(0, (1, 2), isr=(1,), leader=-1),
        partition(1, (2,), leader=-1),
        broker(2, fenced=True),
        brokers=1,
    )
    assert changed(image, settled(image, 1)) == {0: (1, (1,))}


def test_a_topic_may_prefer_any_leader_to_none() -> None:
    unclean = setting(2, "orders", "unclean.leader.election.enable", "true")
    image = cluster(topic(), partition(0, (1, 2), isr=(1,)), unclean, brokers=2)
    assert changed(image, list(broker_left(image, CONFIG, 1))) == {0: (2, (2,))}


def test_a_failed_directory_takes_only_what_was_in_it() -> None:
    image = cluster(topic(), partition(0, (1, 2)), partition(1, (2, 1)), partition(2, (1, 2)), brokers=2)
    partitions = image.topics_by_name["orders"].partitions
    partitions[2] = partitions[2]._replace(directories=(b"x" * 16, directory(2)))
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(b"x" * 16,))
    assert changed(image, settled(image, 1)) == {0: (2, (2,)), 1: (2, (2,))}


@pytest.mark.parametrize("offline", [True, False])
def test_a_replica_in_an_offline_directory_does_not_lead(offline: bool) -> None:
    moved = partition(0, (1,), leader=-1)
    image = cluster(topic(), moved, brokers=1)
    if offline:
        image.topics_by_name["orders"].partitions[0] = PartitionImage(
            replicas=(1,), isr=(1,), leader=-1, directories=(b"x" * 16,)
        )
    assert bool(settled(image, 1)) is not offline


def test_the_settings_that_decide_are_the_clusters_and_not_the_controllers_own() -> None:
    config = BrokerConfig.standalone()
    image = cluster(topic(), partition(0, (1, 2), isr=(1,)), brokers=2)
    config.apply_dynamic({}, {"unclean.leader.election.enable": "true"})
    later = after(image, list(broker_left(image, config, 1))).topics_by_name["orders"].partitions[0]
    assert later.leader == -1
    config.apply_dynamic({"unclean.leader.election.enable": "true"}, {"unclean.leader.election.enable": "false"})
    later = after(image, list(broker_left(image, config, 1))).topics_by_name["orders"].partitions[0]
    assert later.leader == 2


@pytest.mark.parametrize(
    ("partitions", "keeps"),
    [
        ([], True),
        ([partition(0, (2, 3))], True),
        ([partition(0, (1,))], False),
        ([partition(0, (1, 2)), partition(1, (3, 1))], True),
        ([partition(0, (1, 2)), partition(1, (1, 2), isr=(1,))], False),
        ([partition(0, (1, 4))], False),
        ([partition(0, (1, 2), isr=(2,), elr=(1,))], True),
        ([partition(0, (1, 4), isr=(4,), leader=-1, elr=(1,))], False),
    ],
)
def test_a_broker_can_be_spared_if_each_of_its_partitions_keeps_a_leader(
    partitions: list[Message], keeps: bool
) -> None:
    image = cluster(broker(4, fenced=True), topic(), *partitions, brokers=3)
    assert keeps_leaders_without(image, 1) == keeps


def test_a_fenced_broker_leaves_all_its_partitions() -> None:
    image = cluster(topic(), partition(0, (1, 2)), partition(1, (2, 1)), partition(2, (1,)), brokers=2)
    image.brokers[1] = image.brokers[1].with_fencing(True)
    assert changed(image, settled(image, 1)) == {0: (2, (2,)), 1: (2, (2,)), 2: (-1, (1,))}


def test_healthy_partitions_are_not_changed() -> None:
    image = cluster(
        topic(),
        partition(0, (1, 2)),
        partition(1, (2, 3), isr=(2,)),
        partition(2, (3,), leader=-1),
        partition(3, (4, 2), isr=(2,), leader=2),
        broker(3, fenced=True),
        brokers=2,
    )
    assert carried_out(image, lambda later: settle_all(later, CONFIG)).records == []


def test_elections_that_an_earlier_controller_left_undone_are_completed() -> None:
    """Broker 3 was fenced, broker 2 unfenced, and broker 4 removed, each with partitions that were not settled yet."""
    image = cluster(
        topic(),
        partition(0, (3, 1), isr=(3, 1), leader=3),
        partition(1, (2,), leader=-1),
        partition(2, (4, 1), isr=(4, 1), leader=1),
        partition(3, (1, 2)),
        broker(3, fenced=True),
        brokers=2,
    )
    records = carried_out(image, lambda later: settle_all(later, CONFIG)).records
    later = after(image, records).topics_by_name["orders"].partitions
    assert {index: (each.leader, each.isr) for index, each in later.items()} == {
        0: (1, (1,)),
        1: (2, (2,)),
        2: (1, (1,)),
        3: (1, (1, 2)),
    }
    assert len(records) == 3


OF_TWO = setting(4, "", "min.insync.replicas", "2")


def test_a_failed_directory_takes_its_replicas_out_of_those_that_may_lead() -> None:
    """What was not synced there may be lost, although the broker has been up all the time."""
    parts = [partition(0, (1, 2), (1,), elr=(2,)), partition(1, (2, 1), (2,), elr=(1,)), partition(2, (1, 2))]
    image = cluster(topic(), *parts, OF_TWO, brokers=2, features={"eligible.leader.replicas.version": 1})
    image.brokers[1] = image.brokers[1]._replace(log_dirs=(b"x" * 16,))
    records = carried_out(image, lambda later: settle(later, CONFIG, 1, offline=(directory(1),))).records
    later = after(image, records).topics_by_name["orders"].partitions
    assert (later[0].leader, later[0].isr, later[0].elr) == (2, (2,), ())
    assert (later[1].leader, later[1].isr, later[1].elr) == (2, (2,), ())
    assert (later[2].leader, later[2].isr, later[2].elr) == (2, (2,), ())


def test_a_fenced_broker_stays_eligible() -> None:
    image = cluster(topic(), partition(0, (1, 2)), OF_TWO, brokers=2, features={"eligible.leader.replicas.version": 1})
    image.brokers[1] = image.brokers[1].with_fencing(True)
    records = carried_out(image, lambda later: settle(later, CONFIG, 1)).records
    later = after(image, records).topics_by_name["orders"].partitions[0]
    assert (later.leader, later.isr, later.elr) == (2, (2,), (1,))


def test_the_last_two_of_three_leave_an_eligible_replica_each_and_the_first_to_return_leads() -> None:
    image = cluster(
        topic(), partition(0, (1, 2, 3)), OF_TWO, brokers=3, features={"eligible.leader.replicas.version": 1}
    )
    for gone in (1, 2, 3):
        image = with_fencing(image, gone, fenced=True)
    waiting = image.topics_by_name["orders"].partitions[0]
    assert (waiting.leader, waiting.isr, waiting.elr, waiting.last_known_elr) == (-1, (), (2, 3), (3,))
    for back in (1, 2):
        image = with_fencing(image, back, fenced=False)
    led = image.topics_by_name["orders"].partitions[0]
    assert (led.leader, led.isr, led.elr, led.leader_epoch) == (2, (2,), (3,), 4)


def with_fencing(image: ClusterImage, broker_id: int, *, fenced: bool) -> ClusterImage:
    """The image after a broker was fenced or unfenced and its partitions were settled."""
    image.brokers[broker_id] = image.brokers[broker_id].with_fencing(fenced)
    return after(image, carried_out(image, lambda later: settle(later, CONFIG, broker_id)).records)


def test_a_last_known_leader_is_not_elected_while_a_replica_that_has_everything_is_down() -> None:
    before = of_three(isr=(3,), leader=3, last_known_elr=(2,))
    later = change(before, up=(1, 2), rules=ELIGIBLE, without=3)
    assert later is not None
    assert (later.leader, later.isr, later.elr) == (-1, (), (3,))
    returned = change(later, up=(1, 2, 3), rules=ELIGIBLE)
    assert returned is not None and (returned.leader, returned.isr) == (3, (3,))


def test_after_an_unclean_election_no_other_replica_is_eligible() -> None:
    rules = ElectionRules(eligible_leader_replicas=True, min_insync_replicas=2, unclean=True)
    later = change(of_three(isr=(3,), leader=3, last_known_elr=(2,)), up=(1,), rules=rules, without=3)
    assert later is not None
    assert (later.leader, later.isr, later.elr, later.last_known_elr) == (1, (1,), (), ())
    assert later.leader_recovery_state == RECOVERING
