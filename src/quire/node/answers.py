"""Encodes responses: the length of the frame, the correlation id, and the response itself.

The fastest encoder depends only on the API and its version, so dispatch chooses it once for each route.
"""

from collections.abc import Callable, Generator
from struct import Struct
from typing import Any

from quire.protocol import apis, codec
from quire.seams import Part

Writer = Callable[[Any, int], list[Part]]
"""Encodes (response, correlation id) into the parts of a frame."""

SlicedWriter = Callable[[Any, int], Generator[None, None, list[Part]]]
"""The same in slices, for responses that take long to encode."""

_PREFIX = Struct(">ii")


def _head_bytes(key: int, version: int) -> int:
    # A flexible header ends with the number of its tagged fields: 0.
    return _PREFIX.size + (1 if apis.response_header_version(key, version) >= 1 else 0)


def may_be_sliced(key: int) -> bool:
    """Produce and Fetch have encoders of their own, which do not work in slices."""
    return apis.API_NAMES[key] not in ("Fetch", "Produce")


def sliced_writer(key: int, version: int) -> SlicedWriter:
    encode = codec.sliced_encoder(apis.response_class(key), version)
    head_bytes = _head_bytes(key, version)

    def write(response: Any, correlation_id: int) -> Generator[None, None, list[Part]]:
        out = bytearray(head_bytes)
        yield from encode(response, out)
        _PREFIX.pack_into(out, 0, len(out) - 4, correlation_id)
        return [out]

    return write


def writer(key: int, version: int) -> Writer:
    head_bytes = _head_bytes(key, version)
    name = apis.API_NAMES[key]
    if name == "Fetch":
        return _with_slices(version, head_bytes)
    in_one_piece = _in_one_piece(codec.encoder(apis.response_class(key), version), head_bytes)
    if name == "Produce":
        from quire.protocol.fast_produce import answer_writer

        return answer_writer(version, in_one_piece)
    return in_one_piece


def _in_one_piece(encode: codec.Encoder[Any], head_bytes: int) -> Writer:
    def write(response: Any, correlation_id: int) -> list[Part]:
        out = bytearray(head_bytes)
        encode(response, out)
        _PREFIX.pack_into(out, 0, len(out) - 4, correlation_id)
        return [bytes(out)]

    return write


def _with_slices(version: int, head_bytes: int) -> Writer:
    from quire.protocol.fast_fetch import encode_parts

    def write(response: Any, correlation_id: int) -> list[Part]:
        head = bytearray(head_bytes)
        parts = encode_parts(response, version, head)
        _PREFIX.pack_into(head, 0, sum(map(len, parts)) - 4, correlation_id)
        return parts

    return write
