"""Brokers register, are unfenced, stop sending heartbeats and leave."""

from typing import Any

import pytest

from quire.controller import brokers
from quire.controller.controller_result import ControllerResult
from quire.controller.heartbeats import Heartbeats
from quire.metadata.features import SUPPORTED
from quire.metadata.image import ClusterImage
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quire.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from quire.protocol.messages.metadata_records import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.controller.images import CONFIG, after, broker, carried_out, cluster, directory, partition, topic

CLUSTER = "the-cluster"


def registration(**fields: Any) -> BrokerRegistrationRequest:
    request = BrokerRegistrationRequest(
        broker_id=1,
        cluster_id=CLUSTER,
        incarnation_id=b"n" * 16,
        listeners=[Listener(name="PLAINTEXT", host="localhost", port=9092)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
        log_dirs=[directory(1)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def register(
    image: ClusterImage, request: BrokerRegistrationRequest, *, may_replace: bool = True
) -> ControllerResult[BrokerRegistrationResponse]:
    return carried_out(
        image,
        lambda later: brokers.register_broker(
            later, CONFIG, CLUSTER, request, next_offset=lambda: 70, may_replace=lambda: may_replace
        ),
    )


def beat(
    image: ClusterImage, heartbeats: Heartbeats | None = None, **fields: Any
) -> ControllerResult[BrokerHeartbeatResponse]:
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=5, current_metadata_offset=5)
    for name, value in fields.items():
        setattr(request, name, value)
    known = heartbeats or Heartbeats(9000)
    return carried_out(
        image,
        lambda later: brokers.heartbeat(later, CONFIG, known, request, now_ms=100, next_offset=lambda: 80),
    )


def unregister(image: ClusterImage) -> ControllerResult[UnregisterBrokerResponse]:
    request = UnregisterBrokerRequest(broker_id=1)
    return carried_out(image, lambda later: brokers.unregister_broker(later, CONFIG, request))


def test_a_broker_registers_fenced_in_the_epoch_of_its_offset() -> None:
    result = register(cluster(brokers=0), registration(rack="r1"))
    assert result.response.broker_epoch == 70
    registered = after(cluster(brokers=0), result.records).brokers[1]
    assert (registered.epoch, registered.fenced, registered.rack) == (70, True, "r1")
    endpoint = registered.endpoint("PLAINTEXT")
    assert endpoint is not None and endpoint.port == 9092
    assert registered.log_dirs == (directory(1),)


def test_a_new_life_leads_nothing_of_the_old_one() -> None:
    image = cluster(topic(), partition(0, (1,)), partition(1, (2, 1)), brokers=2)
    result = register(image, registration())
    assert isinstance(result.records[-1], RegisterBrokerRecord)
    later = after(image, result.records).topics_by_name["orders"].partitions
    assert (later[0].leader, later[0].isr) == (-1, (1,))
    assert (later[1].leader, later[1].isr) == (2, (2,))


def test_a_repeated_registration_keeps_the_epoch_and_changes_nothing_else() -> None:
    image = cluster(topic(), partition(0, (1,)))
    result = register(image, registration(incarnation_id=image.brokers[1].incarnation_id))
    assert result.response.broker_epoch == 5
    assert len(result.records) == 1
    assert not after(image, result.records).brokers[1].fenced


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
        (
            {"features": [Feature(name="metadata.version", min_supported_version=1, max_supported_version=29)]},
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
    ],
    ids=str,
)
def test_registrations_that_cannot_be(fields: dict[str, Any], code: ErrorCode) -> None:
    result = register(cluster(brokers=0), registration(**fields))
    assert (result.response.error_code, result.records) == (code, [])


def test_two_brokers_with_one_id_are_refused() -> None:
    result = register(cluster(), registration(), may_replace=False)
    assert (result.response.error_code, result.records) == (ErrorCode.DUPLICATE_BROKER_REGISTRATION, [])


def test_without_a_clean_stop_a_replica_is_no_longer_eligible() -> None:
    image = cluster(topic(), partition(0, (1,)), features={"eligible.leader.replicas.version": 1})
    unclean = after(image, register(image, registration(previous_broker_epoch=-1)).records)
    clean = after(image, register(image, registration(previous_broker_epoch=5)).records)
    assert unclean.topics_by_name["orders"].partitions[0].elr == ()
    assert clean.topics_by_name["orders"].partitions[0].elr == (1,)


def test_without_eligible_replicas_it_does_not_matter_how_a_broker_was_stopped() -> None:
    """As in Apache Kafka with eligible.leader.replicas.version=0."""
    image = cluster(topic(), partition(0, (1, 2), isr=(1,)), brokers=2)
    image = after(image, register(image, registration(previous_broker_epoch=-1)).records)
    assert image.topics_by_name["orders"].partitions[0].isr == (1,)
    image = after(image, beat(image, broker_epoch=70, current_metadata_offset=70).records)
    assert image.topics_by_name["orders"].partitions[0].leader == 1


@pytest.mark.parametrize("previous_epoch", [-1, 5], ids=["lost its page cache", "lost nothing"])
def test_a_broker_that_was_unregistered_is_no_longer_eligible(previous_epoch: int) -> None:
    """The controller removed the epoch together with the registration, so it cannot tell whether the broker lost
    anything."""
    image = cluster(
        topic(),
        partition(0, (2, 1), isr=(), leader=-1, elr=(1, 2), last_known_elr=(2,)),
        broker(1, fenced=True),
        broker(2, fenced=True),
        brokers=0,
        features={"eligible.leader.replicas.version": 1},
    )
    image = after(image, unregister(image).records)
    assert image.topics_by_name["orders"].partitions[0].elr == (1, 2)
    image = after(image, register(image, registration(previous_broker_epoch=previous_epoch)).records)
    assert image.topics_by_name["orders"].partitions[0].elr == (2,)
    image = after(image, beat(image, broker_epoch=70, current_metadata_offset=70).records)
    assert image.topics_by_name["orders"].partitions[0].leader == -1, "what was acknowledged is on the other one"


def test_a_broker_is_unfenced_when_it_has_read_its_registration() -> None:
    image = cluster(topic(), partition(0, (1,), leader=-1), broker(1, fenced=True), brokers=0)
    early = beat(image, current_metadata_offset=4)
    assert (early.response.is_caught_up, early.response.is_fenced, early.records) == (False, True, [])
    ready = beat(image)
    assert (ready.response.is_caught_up, ready.response.is_fenced) == (True, False)
    later = after(image, ready.records)
    assert later.brokers[1].is_active
    assert later.topics_by_name["orders"].partitions[0].leader == 1


def test_a_broker_that_wants_to_stay_fenced_stays_fenced() -> None:
    image = cluster(broker(1, fenced=True), brokers=0)
    assert beat(image, want_fence=True).records == []


def test_a_broker_may_ask_to_be_fenced() -> None:
    image = cluster(topic(), partition(0, (1,)))
    result = beat(image, want_fence=True)
    assert result.response.is_fenced
    later = after(image, result.records)
    assert later.brokers[1].fenced and not later.topics_by_name["orders"].partitions[0].has_leader


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"broker_epoch": 4}, ErrorCode.STALE_BROKER_EPOCH), ({"broker_id": 9}, ErrorCode.BROKER_ID_NOT_REGISTERED)],
)
def test_only_heartbeats_of_the_registered_incarnation_count(fields: dict[str, int], code: ErrorCode) -> None:
    heartbeats = Heartbeats(9000)
    with pytest.raises(ApiError) as refused:
        beat(cluster(), heartbeats, **fields)
    assert refused.value.code == code
    assert heartbeats.silent(1e9) == []


def test_a_broker_that_stops_hands_over_its_leaderships_before_it_leaves() -> None:
    heartbeats = Heartbeats(9000)
    heartbeats.heard(2, 5, 100, metadata_offset=79)
    image = cluster(topic(), partition(0, (1, 2)), brokers=2)
    first = beat(image, heartbeats, want_shut_down=True)
    assert (first.response.should_shut_down, first.response.is_fenced) == (False, False)
    image = after(image, first.records)
    assert image.brokers[1].in_controlled_shutdown
    assert image.topics_by_name["orders"].partitions[0].leader == 2
    waiting = beat(image, heartbeats, want_shut_down=True)
    assert (waiting.response.should_shut_down, waiting.records) == (False, [])
    heartbeats.heard(2, 5, 100, metadata_offset=80)
    last = beat(image, heartbeats, want_shut_down=True)
    assert (last.response.should_shut_down, last.response.is_fenced) == (True, True)
    assert after(image, last.records).brokers[1].fenced


def test_a_broker_that_stops_waits_for_no_fenced_broker() -> None:
    heartbeats = Heartbeats(9000)
    heartbeats.heard(2, 5, 100, metadata_offset=80)
    heartbeats.heard(3, 5, 100, metadata_offset=6)
    image = cluster(topic(), partition(0, (1, 2)), brokers=3)
    image = after(image, beat(image, heartbeats, want_shut_down=True).records)
    assert not beat(image, heartbeats, want_shut_down=True).response.should_shut_down
    image = after(image, carried_out(image, lambda later: brokers.fence(later, CONFIG, 3)).records)
    assert beat(image, heartbeats, want_shut_down=True).response.should_shut_down


def test_the_only_broker_may_stop_without_an_heir() -> None:
    heartbeats = Heartbeats(9000)
    image = cluster(topic(), partition(0, (1,)))
    image = after(image, beat(image, heartbeats, want_shut_down=True).records)
    partition_ = image.topics_by_name["orders"].partitions[0]
    assert (partition_.leader, partition_.isr) == (-1, (1,))
    assert beat(image, heartbeats, want_shut_down=True).response.should_shut_down


def test_a_directory_that_failed_is_taken_out_of_service() -> None:
    image = cluster(topic(), partition(0, (1, 2)), brokers=2)
    result = beat(image, offline_log_dirs=[directory(1)])
    assert after(image, result.records).topics_by_name["orders"].partitions[0].leader == 2


def test_cordoned_directories_are_noted_once() -> None:
    image = cluster()
    result = beat(image, cordoned_log_dirs=[])
    assert result.records == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, cordoned_log_dirs=[])]
    assert beat(after(image, result.records), cordoned_log_dirs=[]).records == []


def test_an_unregistered_broker_is_forgotten() -> None:
    image = cluster(topic(), partition(0, (1, 2)), brokers=2)
    result = unregister(image)
    later = after(image, result.records)
    assert 1 not in later.brokers and later.topics_by_name["orders"].partitions[0].leader == 2
    again = unregister(later)
    assert again.response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_session_ends_after_its_length_without_heartbeats() -> None:
    heartbeats = Heartbeats(9000)
    heartbeats.heard(1, 5, 100)
    assert heartbeats.next_expiry_ms == 9100
    assert heartbeats.silent(9099) == [] and heartbeats.is_alive(1, 5, 9099)
    assert heartbeats.silent(9100) == [1] and not heartbeats.is_alive(1, 5, 9100)
    assert not heartbeats.is_alive(1, 4, 100)
