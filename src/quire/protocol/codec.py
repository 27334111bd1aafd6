"""Messages to bytes and back.

`encode` and `decode` are what most callers want; `encoder` and `decoder` are the functions behind them, compiled at
their first use for one class and version, and kept. Malformed bytes raise ProtocolError and nothing else; a message
that its version cannot carry raises EncodeError.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from quire.protocol.errors import EncodeError, ProtocolError
from quire.protocol.schema import Message
from quire.seams import Buffer

M = TypeVar("M", bound=Message)
Decoder = Callable[[Buffer, int], tuple[M, int]]
Encoder = Callable[[M, bytearray], None]

_decoders: dict[type[Message], dict[int, Any]] = {}
_encoders: dict[type[Message], dict[int, Any]] = {}


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message, without any header."""
    out = bytearray()
    encoder(type(message), version)(message, out)
    return bytes(out)


def decode(cls: type[M], data: Buffer, version: int, offset: int = 0) -> M:
    """The message that `data` holds from `offset` to its end; bytes left over are an error.

    Records in the message are views of `data`, everything else is copied.
    """
    message, end = decoder(cls, version)(data, offset)
    if end != len(data):
        raise ProtocolError(f"{cls.__name__} version {version}: {len(data) - end} bytes left over")
    return message


def decoder(cls: type[M], version: int) -> Decoder[M]:
    """`(data, position) -> (message, position behind it)`.

    Messages other than headers and those with records are decoded from a copy of `data`, so that should not be much
    longer than the message.
    """
    try:
        compiled: Decoder[M] = _decoders[cls][version]
    except KeyError:
        from quire.protocol.compile_decode import compile_decoder

        _check_version(cls, version, ProtocolError)
        compiled = compile_decoder(cls, version)
        _decoders.setdefault(cls, {})[version] = compiled
    return compiled


def encoder(cls: type[M], version: int) -> Encoder[M]:
    """`(message, out)`: appends the message to the bytearray `out`."""
    try:
        compiled: Encoder[M] = _encoders[cls][version]
    except KeyError:
        from quire.protocol.compile_encode import compile_encoder

        _check_version(cls, version, EncodeError)
        compiled = compile_encoder(cls, version)
        _encoders.setdefault(cls, {})[version] = compiled
    return compiled


def _check_version(cls: type[Message], version: int, error: type[Exception]) -> None:
    oldest, newest = cls.VERSIONS
    if not oldest <= version <= newest:
        raise error(f"{cls.__name__} has versions {oldest} to {newest}, not {version}")
