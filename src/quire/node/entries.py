"""Answers with an entry for each thing that a request names: once each, in slices, and within a bound.

A name is a few bytes, and what it stands for may be megabytes: without a bound a small request could ask for more than
the node has memory for. The bound is on the encoded size. It is counted entry by entry, before the answer is built.
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
"""Of one answer. Clients refuse larger ones sooner or later: librdkafka at 100 MB, others at 50 MB."""


def entries(
    keys: Iterable[K],
    describe: Callable[[K], E | Pending[E] | Work[E]],
    refuse: Callable[[K, ApiError], E],
    response_with: Callable[[list[E]], Message],
    api_version: int,
) -> Work[list[E]]:
    """An entry for each of `keys`, in their order; those that do not fit any more are refused.

    The first entry is always given: it may be larger than the bound, and no smaller request would get it.
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
    return ApiError(ErrorCode.INVALID_REQUEST, "the answer would be too large: ask for fewer at once")
