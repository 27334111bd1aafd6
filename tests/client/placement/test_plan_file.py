"""Plans in Kafka's JSON: what is read, and each reason for which a plan is refused."""

import json

import pytest

from quire.client.placement.model import Change, Node, Placement, PlacementError
from quire.client.placement.plan_file import changes_of, parse_plan, plan_json

NODES = [Node(1), Node(2, free_bytes=100), Node(3)]
PARTITIONS = [Placement("orders", 0, (1, 2), 60), Placement("orders", 1, (1,), 60)]


def plan(*partitions: tuple[str, object, object]) -> str:
    entries = [{"topic": topic, "partition": partition, "replicas": ids} for topic, partition, ids in partitions]
    return json.dumps({"version": 1, "partitions": entries})


def test_kafkas_file_is_read() -> None:
    text = """{"version":1,"partitions":[
      {"topic":"orders","partition":0,"replicas":[2,3],"log_dirs":["any","any"]},
      {"topic":"orders","partition":1,"replicas":[1]}]}"""
    wanted = parse_plan(text)
    assert wanted == {("orders", 0): (2, 3), ("orders", 1): (1,)}
    assert changes_of(wanted, NODES, PARTITIONS) == [Change(PARTITIONS[0], (2, 3))]


def test_a_plan_that_was_printed_can_be_read() -> None:
    changes = [Change(PARTITIONS[0], (3, 1)), Change(PARTITIONS[1], (2,))]
    assert changes_of(parse_plan(json.dumps(plan_json(changes))), NODES, PARTITIONS) == changes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("orders", "the plan is not JSON: "),
        ("[]", 'the plan needs "partitions": '),
        ('{"partitions": {}}', 'the plan needs "partitions": '),
        ('{"version": 2, "partitions": []}', "the plan has version 2: only 1 is known"),
        ('{"version": 1, "partitions": []}', "the plan has no partitions"),
        ('{"partitions": [7]}', "entry 1 of the plan is not an object"),
        (plan(("orders", "0", [1])), 'entry 1 of the plan needs a "topic" and a "partition"'),
        (plan(("orders", True, [1])), 'entry 1 of the plan needs a "topic" and a "partition"'),
        (plan(("orders", -1, [1])), 'entry 1 of the plan needs a "topic" and a "partition"'),
        (plan(("orders", 0, 1)), 'orders-0 needs "replicas": a list of broker ids'),
        (plan(("orders", 0, ["1"])), 'orders-0 needs "replicas": a list of broker ids'),
        (plan(("orders", 0, [1]), ("orders", 0, [2])), "the plan names orders-0 twice"),
        (plan(("orders", 0, [])), "orders-0 would have no replicas"),
        (plan(("orders", 0, [1, 3, 1])), "orders-0 would have two replicas on broker 1"),
        (plan(("orders", 0, [1, 9])), "orders-0 cannot move to broker 9, which is not up or does not exist; "),
        (plan(("orders", 5, [1])), "topic orders has no partition 5: it may have been deleted"),
        (plan(("audit", 0, [1])), "there is no topic audit: it may have been deleted since the plan was made"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_the_reason(text: str, sentence: str) -> None:
    with pytest.raises(PlacementError) as refused:
        changes_of(parse_plan(text), NODES, PARTITIONS)
    assert str(refused.value).startswith(sentence)


def test_a_plan_that_does_not_fit_on_a_disk_is_refused() -> None:
    wanted = parse_plan(plan(("orders", 1, [2])))
    assert len(changes_of(wanted, NODES, PARTITIONS)) == 1
    more = [*PARTITIONS, Placement("orders", 2, (1,), 60)]
    with pytest.raises(PlacementError, match="the plan copies 120 bytes to broker 2, and its disks have room for 100"):
        changes_of(wanted | {("orders", 2): (2,)}, NODES, more)


def test_a_replica_on_a_broker_that_is_down_may_stay() -> None:
    assert changes_of({("orders", 0): (9, 3)}, NODES, [Placement("orders", 0, (9, 1))])
