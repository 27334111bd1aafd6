"""How many elements one message may have, all its arrays and tagged fields taken together.

An element is a byte or a few on the wire, a hundred in memory, and some microseconds of the one thread that everybody
shares: without a limit a request of two megabytes holds all other clients up for seconds. Decoders count every element
against the limit of their message and refuse what goes beyond it.
"""

from typing import Final

REQUEST_ELEMENTS_MAX: Final = 40_000
"""For most requests, which are then decoded in some twenty milliseconds. A follower that fetches twenty thousand
partitions fits, and so do offsets of as many."""

HEADER_TAGS_MAX: Final = 32
"""None of the tagged fields of a request's header means anything to us today."""

_SMALLER: Final = {
    # Structures with many fields, most of which need not be sent: microseconds to decode each, ...
    "CreateTopicsRequest": 20_000,
    "OffsetFetchRequest": 20_000,
    # ... ten microseconds and more for each topic or partition, ...
    "MetadataRequest": 20_000,
    "DescribeTopicPartitionsRequest": 20_000,
    "DescribeProducersRequest": 20_000,
    "DeleteRecordsRequest": 20_000,
    # ... and some hundred for all the settings of one.
    "DescribeConfigsRequest": 10_000,
    "RequestHeader": HEADER_TAGS_MAX,
}

TRUSTED_ELEMENTS_MAX: Final = 4_000_000
"""For responses and what is read from disk: Metadata of half a million partitions with three replicas each."""


def elements_max(message_name: str) -> int:
    if message_name in _SMALLER:
        return _SMALLER[message_name]
    return REQUEST_ELEMENTS_MAX if message_name.endswith("Request") else TRUSTED_ELEMENTS_MAX
