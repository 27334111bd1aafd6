"""How many elements one message may have in all of its arrays and tagged fields together.

An element takes a few bytes on the wire, a hundred in memory, and some microseconds of the one thread that all clients
share: without a limit, a request of two megabytes would block all other clients for seconds. Decoders count every
element, and refuse messages that exceed their limit.
"""

from typing import Final

REQUEST_ELEMENTS_MAX: Final = 40_000
"""For most requests, which are then decoded in about twenty milliseconds. This is enough for a follower that fetches
twenty thousand partitions, and for the offsets of as many."""

HEADER_TAGS_MAX: Final = 32
"""Quire uses none of the tagged fields of a request header."""

_SMALLER: Final = {
    # Structures with many optional fields: several microseconds to decode each.
    "CreateTopicsRequest": 20_000,
    "OffsetFetchRequest": 20_000,
    # At least ten microseconds for each topic or partition.
    "MetadataRequest": 20_000,
    "DescribeTopicPartitionsRequest": 20_000,
    "DescribeProducersRequest": 20_000,
    "DeleteRecordsRequest": 20_000,
    # Some hundred microseconds for all settings of one resource.
    "DescribeConfigsRequest": 10_000,
    "RequestHeader": HEADER_TAGS_MAX,
}

TRUSTED_ELEMENTS_MAX: Final = 4_000_000
"""For responses and what is read from disk: Metadata of half a million partitions with three replicas each."""


def elements_max(message_name: str) -> int:
    if message_name in _SMALLER:
        return _SMALLER[message_name]
    return REQUEST_ELEMENTS_MAX if message_name.endswith("Request") else TRUSTED_ELEMENTS_MAX
