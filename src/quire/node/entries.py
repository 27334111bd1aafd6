"""Builds responses that have an entry for each name in the request: each name once, in slices, up to a size limit.

A name takes a few bytes, and its entry may take megabytes: without a limit, a small request could use up the node's
memory. The limit is on the encoded size, which is counted entry by entry before the response is built.
"""

from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import TypeVar, cast

from quire.node.slices import Work
from quire.pending import Pending
from quire.protocol import codec
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.schema import Message

K = TypeVar("K")
E = TypeVar("E")

ENTRIES_BYTES_MAX = 32 * 1024 * 1024
"""The limit of one response. Clients refuse responses that are much larger: librdkafka at 100 MB, others at 50 MB."""


def entries(
    keys: Iterable[K],
    describe: Callable[[K], E | Pending[E] | Work[E]],
    refuse: Callable[[K, ApiError], E],
    response_with: Callable[[list[E]], Message],
    api_version: int,
) -> Work[list[E]]:
    """One entry for each of `keys`, in order. Keys beyond the limit are refused.

    The first entry is always in the response, even if it exceeds the limit: no smaller request could get it.
    """
    given: list[E] = []
    room_bytes = ENTRIES_BYTES_MAX
    for key in dict.fromkeys(keys):
        if room_bytes > 0:
            described = describe(key)
            if isinstance(described, Pending):
                described = yield described
            elif isinstance(described, GeneratorType):
                described = yield from described
            entry = cast(E, described)
            size = _size(response_with([entry]), api_version)
            if size > room_bytes and given:
                entry = refuse(key, _too_much())
            room_bytes -= size
        else:
            entry = refuse(key, _too_much())
        given.append(entry)
        yield None
    return given


def _size(response: Message, api_version: int) -> int:
    out = bytearray()
    codec.encoder(type(response), api_version)(response, out)
    return len(out)


def _too_much() -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, "the response would be too large: name fewer at once")
