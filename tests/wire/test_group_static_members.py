"""Static members, `group.instance.id`: they return without a rebalance, and exist only once.

Only librdkafka reports to the application that another member has fenced it: kafka-python only logs it and continues,
and aiokafka sends heartbeats without its instance id and joins again.
"""

import contextlib
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.errors import NoError

from tests.wire.clients import eventually
from tests.wire.conftest import MakeTopic, NewName
from tests.wire.group_members import MEMBERS, member, wait_until_shared_out

PARTITIONS = 4


def instance(client: str, name: str) -> dict[str, str]:
    return {"group.instance.id" if client == "confluent-kafka" else "group_instance_id": name}


@pytest.mark.parametrize("client", MEMBERS)
def test_a_static_member_that_restarts_gets_its_partitions_back_without_a_rebalance(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName, client: str
) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with member(bootstrap, group, [topic], client=client, **instance(client, "stays")) as stays:
        with member(bootstrap, group, [topic], client=client, **instance(client, "restarts")) as restarts:
            wait_until_shared_out([stays, restarts], topic, PARTITIONS)
            owned = restarts.assigned
        before = list(stays.events)
        with member(bootstrap, group, [topic], client=client, **instance(client, "restarts")) as restarted:
            eventually(lambda: restarted.assigned == owned)
            assert stays.events == before


def test_a_second_member_with_the_same_instance_id_takes_over_and_the_first_is_fenced(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with (
        pytest.raises(KafkaException, match="instance"),  # a member's error is raised when it is closed
        member(bootstrap, group, [topic], **instance("confluent-kafka", "double")) as first,
    ):
        wait_until_shared_out([first], topic, PARTITIONS)
        with member(bootstrap, group, [topic], **instance("confluent-kafka", "double")) as second:
            wait_until_shared_out([second], topic, PARTITIONS)
            eventually(lambda: first.error is not None)
            assert first.error.args[0].code() == KafkaError.FENCED_INSTANCE_ID


def test_a_static_member_that_stays_away_loses_its_partitions_when_its_session_ends(
    bootstrap: str, make_topic: MakeTopic, new_group: NewName
) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with member(bootstrap, group, [topic], **instance("confluent-kafka", "stays")) as stays:
        goes_for_good: dict[str, Any] = {"group.instance.id": "goes", "session.timeout.ms": 6000}
        with member(bootstrap, group, [topic], **goes_for_good) as goes:
            wait_until_shared_out([stays, goes], topic, PARTITIONS)
        assert len(stays.assigned) == PARTITIONS // 2
        wait_until_shared_out([stays], topic, PARTITIONS)


def test_an_administrator_can_remove_a_static_member(bootstrap: str, make_topic: MakeTopic, new_group: NewName) -> None:
    topic, group = make_topic(PARTITIONS), new_group()
    with member(bootstrap, group, [topic], **instance("confluent-kafka", "stays")) as stays:
        with member(bootstrap, group, [topic], **instance("confluent-kafka", "goes")) as goes:
            wait_until_shared_out([stays, goes], topic, PARTITIONS)
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as remover:
            answers = remover.remove_group_members(group, [MemberToRemove(group_instance_id="goes")])
            assert list(answers.values()) == [NoError]
        wait_until_shared_out([stays], topic, PARTITIONS)
