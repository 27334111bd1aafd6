"""Encodes and decodes messages.

Most callers use `encode` and `decode`. `encoder` and `decoder` return the functions behind them, which are compiled for
one class and version at their first use, and cached. `encode_parts` is for responses with records: file slices stay as
they are. Malformed bytes raise ProtocolError and nothing else; a message that its version cannot express raises
EncodeError. Produce and Fetch requests and Metadata responses have hand-tuned functions in front of the compiled ones.
"""

from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any, Protocol, TypeAlias, TypeVar

from quire.protocol.errors import EncodeError, ProtocolError
from quire.protocol.schema import Message
from quire.seams import Buffer, Part

M = TypeVar("M", bound=Message)
M_contra = TypeVar("M_contra", bound=Message, contravariant=True)

Decoder: TypeAlias = Callable[[Buffer, int], tuple[M, int]]
"""`(data, position) -> (message, position after it)`."""


SlicedEncoder: TypeAlias = Callable[[M, bytearray], Generator[None, None, None]]
"""Appends a message to a bytearray, one element of its arrays at a time."""


class Encoder(Protocol[M_contra]):
    def __call__(self, message: M_contra, out: bytearray, parts: list[Part] | None = None, /) -> None:
        """Appends the message to `out`; with `parts`, adds `out` and all that follows to them."""


# The messages with hand-tuned functions. These fall back to the compiled function.
_TUNED_DECODERS = {
    "FetchRequest": ("fast_fetch", "request_decoder"),
    "ProduceRequest": ("fast_produce", "request_decoder"),
}
_TUNED_ENCODERS = {
    "MetadataResponse": ("fast_metadata", "response_encoder"),
}

_decoders: dict[type[Message], dict[int, Any]] = {}
_encoders: dict[type[Message], dict[int, Any]] = {}
_sliced_encoders: dict[type[Message], dict[int, Any]] = {}


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message, without a header. File slices in its records are read."""
    out = bytearray()
    encoder(type(message), version)(message, out)
    return bytes(out)


def encode_parts(message: Message, version: int, head: bytearray | None = None) -> list[Part]:
    """The message as parts for a transport: file slices and large records as they are, the rest in between.

    `head` comes before the message; it becomes the first part, without a copy, and its bytes may be changed afterwards
    (to fill in the total size).
    """
    parts: list[Part] = []
    encoder(type(message), version)(message, bytearray() if head is None else head, parts)
    return parts


def decode(cls: type[M], data: Buffer, version: int, offset: int = 0) -> M:
    """The message in `data` from `offset` to its end; remaining bytes are an error.

    Records in the message are views of `data`, everything else is copied.
    """
    message, end = decoder(cls, version)(data, offset)
    if end != len(data):
        raise ProtocolError(f"{cls.__name__} version {version}: {len(data) - end} bytes left over")
    return message


def decoder(cls: type[M], version: int) -> Decoder[M]:
    """The function that decodes one version of a message.

    Except headers and messages with records, a message is decoded from a copy of the data, so the data should not be
    much longer than the message.
    """
    try:
        found: Decoder[M] = _decoders[cls][version]
    except KeyError:
        from quire.protocol.compile_decode import compile_decoder

        _check_version(cls, version, ProtocolError)
        found = _tuned(_TUNED_DECODERS, cls, version, compile_decoder(cls, version))
        _decoders.setdefault(cls, {})[version] = found
    return found


def encoder(cls: type[M], version: int) -> Encoder[M]:
    """The function that encodes one version of a message."""
    try:
        found: Encoder[M] = _encoders[cls][version]
    except KeyError:
        from quire.protocol.compile_encode import compile_encoder

        _check_version(cls, version, EncodeError)
        found = _tuned(_TUNED_ENCODERS, cls, version, compile_encoder(cls, version))
        _encoders.setdefault(cls, {})[version] = found
    return found


def sliced_encoder(cls: type[M], version: int) -> SlicedEncoder[M]:
    """As `encoder`, for messages that take long to encode: the caller iterates over the result until its end."""
    try:
        found: SlicedEncoder[M] = _sliced_encoders[cls][version]
    except KeyError:
        from quire.protocol.compile_encode import compile_sliced_encoder

        _check_version(cls, version, EncodeError)
        found = compile_sliced_encoder(cls, version)
        _sliced_encoders.setdefault(cls, {})[version] = found
    return found


def _check_version(cls: type[Message], version: int, error: type[Exception]) -> None:
    oldest, newest = cls.VERSIONS
    if not oldest <= version <= newest:
        raise error(f"{cls.__name__} has versions {oldest} to {newest}, not {version}")


def _tuned(table: dict[str, tuple[str, str]], cls: type[Message], version: int, compiled: Any) -> Any:
    if cls.__name__ not in table:
        return compiled
    module, name = table[cls.__name__]
    return getattr(import_module(f"quire.protocol.{module}"), name)(version, compiled)
