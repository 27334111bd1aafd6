"""The topics in the subscriptions of consumers."""

from hypothesis import given
from hypothesis import strategies as st

from quire.coordinators.group.classic.subscribed_topics import subscribed_topics
from quire.protocol.codec import encode
from quire.protocol.messages.consumer_protocol import ConsumerProtocolSubscription


def subscription(version: int, *topics: str) -> bytes:
    return version.to_bytes(2, "big") + encode(ConsumerProtocolSubscription(topics=list(topics)), version)


def test_the_topics_of_all_members_and_versions_are_put_together() -> None:
    said = [subscription(0, "a"), subscription(1, "a", "b"), subscription(3, "c")]
    assert subscribed_topics(said) == frozenset("abc")


def test_a_version_of_the_future_is_read_as_far_as_it_is_known() -> None:
    assert subscribed_topics([(9).to_bytes(2, "big") + subscription(3, "a")[2:] + b"and more"]) == frozenset("a")


def test_unreadable_metadata_means_that_the_topics_are_unknown() -> None:
    assert subscribed_topics([subscription(0, "a"), b"\0\0\0\0\0\5abc"]) is None
    assert subscribed_topics([b"\0"]) is None


@given(st.binary(max_size=60))
def test_no_bytes_are_too_strange(said: bytes) -> None:
    assert subscribed_topics([said]) is None or isinstance(subscribed_topics([said]), frozenset)
