"""The checker of metadata: acknowledged changes compared with responses to Metadata."""

from collections.abc import Callable

import pytest

from quire.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from simulator.checks.metadata_checker import MetadataChecker
from simulator.ledger import Ledger, TopicBook
from simulator.violation import Violation

ORDERS, EVENTS, OTHER = bytes([1] * 16), bytes([2] * 16), bytes([3] * 16)


def ledger_with_two_topics() -> Ledger:
    ledger = Ledger()
    for name, topic_id in (("orders", ORDERS), ("events", EVENTS)):
        ledger.topics[topic_id] = TopicBook(name, topic_id, 2, stays=False)
    return ledger


def metadata(*topics: tuple[str, bytes, int]) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                name=name,
                topic_id=topic_id,
                partitions=[MetadataResponsePartition(partition_index=index) for index in range(count)],
            )
            for name, topic_id, count in topics
        ]
    )


def test_all_topics_with_all_their_partitions_are_as_promised() -> None:
    checker = MetadataChecker(ledger_with_two_topics())
    checker.described(checker.floor(), metadata(("orders", ORDERS, 2), ("events", EVENTS, 2)))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (metadata(("orders", ORDERS, 2)), "topic events was created and is not there"),
        (metadata(("orders", ORDERS, 2), ("events", OTHER, 2)), "topic events has another id"),
        (metadata(("orders", ORDERS, 1), ("events", EVENTS, 2)), "orders has 1 partitions"),
        (metadata(("orders", ORDERS, 3), ("events", EVENTS, 2)), "orders has 3 partitions"),
        (metadata(("orders", ORDERS, 2), ("events", EVENTS, 2), ("unasked", OTHER, 1)), "no client created it"),
    ],
    ids=["missing", "another id", "too few partitions", "too many partitions", "unasked"],
)
def test_any_other_state_is_a_violation(wrong: MetadataResponse, words: str) -> None:
    checker = MetadataChecker(ledger_with_two_topics())
    with pytest.raises(Violation, match=words):
        checker.described(checker.floor(), wrong)


def test_while_a_request_has_no_answer_both_outcomes_are_right() -> None:
    ledger = ledger_with_two_topics()
    ledger.topics[ORDERS].partitions_asked = 3
    ledger.topics[EVENTS].deletion_asked = True
    ledger.doubtful_names.append("coming")
    checker = MetadataChecker(ledger)
    checker.described(checker.floor(), metadata(("orders", ORDERS, 2), ("events", EVENTS, 2)))
    checker.described(checker.floor(), metadata(("orders", ORDERS, 3), ("coming", OTHER, 1)))


def test_a_deleted_topic_stays_deleted_but_its_name_may_be_reused() -> None:
    ledger = ledger_with_two_topics()
    ledger.topics[EVENTS].deletion_asked = ledger.topics[EVENTS].deleted = True
    checker = MetadataChecker(ledger)
    floor = checker.floor()
    with pytest.raises(Violation, match="topic events was deleted and is there again"):
        checker.described(floor, metadata(("orders", ORDERS, 2), ("events", EVENTS, 2)))
    ledger.topics[OTHER] = TopicBook("events", OTHER, 1, stays=False)
    checker.described(floor, metadata(("orders", ORDERS, 2), ("events", OTHER, 1)))


def test_an_answer_that_was_asked_for_before_a_deletion_may_still_have_the_topic() -> None:
    ledger = ledger_with_two_topics()
    checker = MetadataChecker(ledger)
    floor = checker.floor()
    ledger.topics[EVENTS].deletion_asked = True
    checker.described(floor, metadata(("orders", ORDERS, 2), ("events", EVENTS, 2)))
    checker.described(floor, metadata(("orders", ORDERS, 2)))
    ledger.topics[EVENTS].deleted = True
    checker.described(floor, metadata(("orders", ORDERS, 2), ("events", EVENTS, 2)))


def test_a_setting_has_one_of_its_possible_values() -> None:
    ledger = ledger_with_two_topics()
    check: Callable[[str | None], None] = lambda value: MetadataChecker(ledger).settings(  # noqa: E731
        ledger.topics[ORDERS], {"retention.ms": ["5", "6"]}, {"retention.ms": value}
    )
    check("5")
    check("6")
    for wrong in ("7", None):
        with pytest.raises(Violation, match=f"retention.ms of .* is {wrong!r}, but was set to"):
            check(wrong)
