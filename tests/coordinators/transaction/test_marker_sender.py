"""MarkerSender: which node gets which marker, when and how often, and what its answers mean."""

from collections.abc import Sequence

import pytest

from quire.coordinators.transaction.marker_sender import MarkerSender
from quire.coordinators.transaction.transactions import Markers
from quire.metadata.image import ClusterImage, PartitionImage, TopicImage
from quire.pending import Pending, completed
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from quire.protocol.schema import Message
from simulator.clock import SimClock

Sent = tuple[int, list[tuple[int, str, int]]]
"""A node, and the producer id, topic and partition of each marker."""


class Desk:
    """A sender and its environment; the test gives each answer, or all are given at once with `at_once`."""

    def __init__(self, at_once: ErrorCode | None = None) -> None:
        self.at_once = at_once
        self.clock = SimClock()
        self.image = ClusterImage()
        self.image.add_topic(TopicImage("t", bytes(16)))
        for index in range(4):
            self.lead(index, 1 + index % 2)
        self.requests: list[tuple[int, WriteTxnMarkersRequest, Pending[Message | ApiError]]] = []
        self.completed: list[Markers] = []
        self.latest: Pending[bool] | None = None
        """The result of an attempt to bring the image up to date; by default it is up to date."""
        self.sender = MarkerSender(self, self.clock, 9, self)

    def when_up_to_date(self) -> Pending[bool]:
        return completed(True) if self.latest is None else self.latest

    def lead(self, index: int, leader: int) -> None:
        self.image.topics_by_name["t"].partitions[index] = PartitionImage((1, 2), (1, 2), leader)

    def send(self, node_id: int, request: Message, version: int) -> Pending[Message | ApiError]:
        assert isinstance(request, WriteTxnMarkersRequest) and version == 2
        answer: Pending[Message | ApiError] = Pending()
        self.requests.append((node_id, request, answer))
        if self.at_once is not None:
            self.answer(-1, self.at_once)
        return answer

    def markers_written(self, markers: Markers) -> None:
        self.completed.append(markers)

    def abort_with_new_producer_id(self, transactional_id: str) -> None:
        raise AssertionError("a sender aborts nothing")

    def write(self, name: str, producer_id: int, *partitions: int) -> None:
        indexes = {"t": list(partitions)} if partitions else {}
        self.sender.write([Markers(name, producer_id, 3, True, 2, indexes)])

    def answer(self, number: int, code: ErrorCode, *, only: Sequence[int] | None = None) -> None:
        """Answers with `code` for the requested partitions, or only for some of them."""
        _, request, answer = self.requests[number]
        answer.complete(
            WriteTxnMarkersResponse(
                markers=[
                    WritableTxnMarkerResult(
                        producer_id=marker.producer_id,
                        topics=[
                            WritableTxnMarkerTopicResult(
                                name=topic.name,
                                partitions=[
                                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                                    for index in topic.partition_indexes
                                    if only is None or index in only
                                ],
                            )
                            for topic in marker.topics
                        ],
                    )
                    for marker in request.markers
                ]
            )
        )

    @property
    def sent(self) -> list[Sent]:
        """The requests that were sent since the last call."""
        found = [
            (
                node_id,
                [
                    (marker.producer_id, topic.name, index)
                    for marker in request.markers
                    for topic in marker.topics
                    for index in topic.partition_indexes
                ],
            )
            for node_id, request, _ in self.requests[self._seen :]
        ]
        self._seen = len(self.requests)
        return found

    _seen = 0


def test_each_leader_gets_one_request_for_all_its_partitions() -> None:
    desk = Desk()
    desk.write("orders", 7, 0, 1, 2, 3)
    assert desk.sent == [(1, [(7, "t", 0), (7, "t", 2)]), (2, [(7, "t", 1), (7, "t", 3)])]
    (_, request, _), _ = desk.requests
    (marker,) = request.markers
    assert (marker.producer_epoch, marker.transaction_result) == (3, True)
    assert (marker.coordinator_epoch, marker.transaction_version) == (9, 2)


def test_it_is_complete_when_the_last_partition_has_answered() -> None:
    desk = Desk()
    desk.write("orders", 7, 0, 1)
    desk.answer(1, ErrorCode.NONE)
    assert not desk.completed
    desk.answer(0, ErrorCode.NONE)
    assert len(desk.completed) == 1
    desk.clock.run_for(100_000)
    assert len(desk.requests) == 2


def test_answers_that_come_at_once_complete_it_at_once_and_leave_no_timer() -> None:
    desk = Desk(at_once=ErrorCode.NONE)
    desk.write("orders", 7, 0, 1)
    assert len(desk.completed) == 1
    assert not desk.clock.step()


def test_a_transaction_without_partitions_is_complete_at_once() -> None:
    desk = Desk()
    desk.write("orders", 7)
    assert len(desk.completed) == 1 and not desk.requests


def test_markers_written_while_responses_arrive_are_sent_together_afterwards() -> None:
    class WritingDesk(Desk):
        def markers_written(self, markers: Markers) -> None:
            super().markers_written(markers)
            if len(self.completed) == 1:
                for number in range(50):
                    self.write(f"id{number}", number, 0)

    desk = WritingDesk(at_once=ErrorCode.NONE)
    desk.write("orders", 100, 0)
    assert desk.sent == [(1, [(100, "t", 0)]), (1, [(number, "t", 0) for number in range(50)])]
    assert len(desk.completed) == 51


@pytest.mark.parametrize(
    "code",
    [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION],
)
def test_a_partition_that_needs_no_marker_any_more_is_done(code: ErrorCode) -> None:
    desk = Desk(at_once=code)
    desk.write("orders", 7, 0)
    assert len(desk.completed) == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_every_other_error_is_retried(code: ErrorCode) -> None:
    desk = Desk()
    desk.write("orders", 7, 0)
    desk.answer(0, code)
    desk.clock.run_for(20)
    desk.answer(1, ErrorCode.NONE)
    assert len(desk.completed) == 1


def test_only_what_was_refused_is_sent_again() -> None:
    desk = Desk()
    desk.write("orders", 7, 0, 2)
    desk.answer(0, ErrorCode.NONE, only=[2])
    assert desk.sent == [(1, [(7, "t", 0), (7, "t", 2)])]
    desk.clock.run_for(20)
    assert desk.sent == [(1, [(7, "t", 0)])]


def test_it_is_tried_ever_more_slowly_but_at_least_every_second() -> None:
    desk = Desk(at_once=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    desk.write("orders", 7, 0)
    desk.clock.run_for(10_000)
    assert 12 <= len(desk.requests) <= 20
    desk.at_once = ErrorCode.NONE
    desk.clock.run_for(1_000)
    assert len(desk.completed) == 1


def test_a_node_that_cannot_be_asked_is_asked_again() -> None:
    desk = Desk()
    desk.write("orders", 7, 0)
    desk.requests[0][2].complete(ApiError(ErrorCode.BROKER_NOT_AVAILABLE))
    desk.clock.run_for(20)
    assert len(desk.requests) == 2


def test_without_an_answer_it_is_sent_again_after_the_timeout_and_either_answer_counts() -> None:
    desk = Desk()
    desk.write("orders", 7, 0)
    desk.clock.run_for(29_999)
    assert len(desk.requests) == 1
    desk.clock.run_for(1)
    assert len(desk.requests) == 2
    desk.answer(0, ErrorCode.NONE)
    assert len(desk.completed) == 1
    desk.answer(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    desk.clock.run_for(60_000)
    assert len(desk.requests) == 2 and len(desk.completed) == 1


def test_retries_due_at_the_same_time_are_sent_together() -> None:
    desk = Desk(at_once=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for number in range(5):
        desk.write(f"id{number}", number, 0)
    desk.requests.clear()
    desk.at_once = ErrorCode.NONE
    desk.clock.run_for(20)
    assert desk.sent == [(1, [(number, "t", 0) for number in range(5)])]


def test_a_new_leader_is_asked_as_soon_as_it_is_known() -> None:
    desk = Desk()
    desk.write("orders", 7, 0, 1)
    assert len(desk.sent) == 2
    desk.lead(0, 2)
    desk.sender.metadata_changed()
    assert desk.sent == [(2, [(7, "t", 0)])]


def test_a_partition_without_a_leader_is_waited_for() -> None:
    desk = Desk()
    desk.lead(0, -1)
    desk.write("orders", 7, 0)
    desk.clock.run_for(5_000)
    assert not desk.sent
    desk.lead(0, 1)
    desk.sender.metadata_changed()
    assert desk.sent == [(1, [(7, "t", 0)])]


def test_a_deleted_partition_needs_no_marker() -> None:
    desk = Desk()
    desk.write("orders", 7, 0)
    desk.image.remove_topic(desk.image.topics_by_name["t"])
    desk.sender.metadata_changed()
    assert len(desk.completed) == 1


def test_an_answer_for_the_transaction_before_does_not_count_for_the_next_of_the_same_id() -> None:
    desk = Desk()
    desk.write("orders", 7, 0)
    desk.write("orders", 7, 0)
    desk.answer(0, ErrorCode.NONE)
    assert not desk.completed
    desk.answer(1, ErrorCode.NONE)
    assert len(desk.completed) == 1


def test_decisions_made_together_are_sent_together() -> None:
    desk = Desk()
    desk.sender.write([Markers(f"id{number}", number, 3, True, 2, {"t": [0, 1]}) for number in range(3)])
    assert desk.sent == [(1, [(number, "t", 0) for number in range(3)]), (2, [(number, "t", 1) for number in range(3)])]


def test_a_request_has_a_thousand_markers_at_most() -> None:
    desk = Desk(at_once=ErrorCode.NONE)
    for index in range(2_100):
        desk.lead(index, 1)
    sizes = (600, 600, 300, 2_100)
    desk.sender.write(
        [Markers(f"id{number}", number, 3, True, 2, {"t": list(range(size))}) for number, size in enumerate(sizes)]
    )
    sent = [markers for _, markers in desk.sent]
    assert [len(markers) for markers in sent] == [600, 900, 1_000, 1_000, 100]
    expected = [(number, "t", index) for number, size in enumerate(sizes) for index in range(size)]
    assert [marker for markers in sent for marker in markers] == expected
    assert len(desk.completed) == 4


def test_partitions_that_stay_unreachable_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(at_once=ErrorCode.NOT_ENOUGH_REPLICAS)
    desk.write("orders", 7, 0, 2)
    desk.clock.run_for(60_000)
    assert [record.getMessage() for record in caplog.records] == [
        "the transaction of orders is decided, and 2 partitions (t-0) have no marker yet; they are tried again"
    ]


def test_two_transactions_of_one_producer_id_in_one_request_are_both_answered() -> None:
    desk = Desk(at_once=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    desk.write("orders", 7, 0)
    desk.write("payments", 7, 2)
    desk.at_once = ErrorCode.NONE
    desk.clock.run_for(20)
    assert len(desk.completed) == 2


def test_after_a_stop_nothing_is_sent_or_reported() -> None:
    desk = Desk()
    desk.write("orders", 7, 0)
    desk.write("payments", 8, 1)
    desk.sender.stop()
    desk.answer(0, ErrorCode.NONE)
    desk.answer(1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    desk.write("refunds", 9, 0)
    desk.write("nothing", 10)
    desk.sender.metadata_changed()
    desk.clock.run_for(100_000)
    assert len(desk.requests) == 2 and not desk.completed


def test_a_partition_that_is_newer_than_the_image_gets_its_marker() -> None:
    desk = Desk()
    desk.latest = Pending()
    desk.write("orders", 7, 0, 9)
    assert desk.sent == [(1, [(7, "t", 0)])]
    desk.answer(0, ErrorCode.NONE)
    desk.clock.run_for(60_000)
    assert desk.completed == [], "the topic may be one that this coordinator has not read of yet"
    desk.lead(9, 2)
    desk.latest.complete(True)
    assert desk.sent == [(2, [(7, "t", 9)])]
    desk.answer(1, ErrorCode.NONE)
    assert len(desk.completed) == 1


def test_a_partition_that_the_latest_image_does_not_have_was_deleted() -> None:
    desk = Desk()
    desk.latest = Pending()
    desk.write("orders", 7, 9)
    assert desk.completed == []
    desk.latest.complete(True)
    assert len(desk.completed) == 1 and desk.sent == []


def test_an_image_that_cannot_be_brought_up_to_date_is_asked_for_again() -> None:
    desk = Desk()
    first = desk.latest = Pending()
    desk.write("orders", 7, 9)
    desk.latest = None
    first.complete(False)
    assert desk.completed == []
    desk.clock.run_for(5_000)
    assert len(desk.completed) == 1
