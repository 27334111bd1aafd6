"""Compares a hand-tuned codec with the compiled one."""

import random
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings

from quire.protocol import compile_decode, compile_encode
from quire.protocol.errors import ProtocolError
from quire.protocol.schema import Message
from quire.seams import Part

QUICK = settings(max_examples=25, database=None, deadline=None, suppress_health_check=list(HealthCheck))
TOPIC_ID = bytes(range(16))


compile_decoder = cache(compile_decode.compile_decoder)
compile_encoder = cache(compile_encode.compile_encoder)


def never(*_: Any) -> Any:
    """Replaces the compiled codec in tests that must not need it."""
    raise AssertionError("the compiled codec was called")


def compiled_bytes(message: Message, version: int) -> bytearray:
    out = bytearray()
    compile_encoder(type(message), version)(message, out)
    return out


def assert_decodes_alike(tuned: Any, message: Message, version: int, behind: bytes = b"") -> None:
    """Both decoders decode the message at any position and with any bytes after it."""
    compiled = compile_decoder(type(message), version)
    decode = tuned(version, compiled)
    data = bytes(compiled_bytes(message, version))
    assert decode(memoryview(data), 0) == compiled(memoryview(data), 0) == (message, len(data))
    surrounded = memoryview(b"before" + data + behind)
    assert decode(surrounded, 6) == compiled(surrounded, 6)


def assert_refuses_alike(tuned: Any, message: Message, version: int) -> None:
    """Both decoders refuse a message that is cut short at any position, and agree if any byte is changed."""
    compiled = compile_decoder(type(message), version)
    decode = tuned(version, compiled)
    data = bytes(compiled_bytes(message, version))
    for size in range(len(data)):
        assert _outcome(decode, data[:size]) == _outcome(compiled, data[:size]) == ProtocolError
    chance = random.Random(version)
    refused = 0
    for position in range(min(len(data), 120)):
        for value in (0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)):
            changed = bytearray(data)
            changed[position] = value
            result = _outcome(decode, bytes(changed))
            assert result == _outcome(compiled, bytes(changed))
            refused += result is ProtocolError
    assert refused


def assert_encodes_alike(tuned: Any, message: Message, version: int) -> None:
    encode = tuned(version, compile_encoder(type(message), version))
    expected = b"head" + compiled_bytes(message, version)
    out = bytearray(b"head")
    encode(message, out)
    assert out == expected
    parts: list[Part] = []
    encode(message, bytearray(b"head"), parts)
    assert parts == [expected]


def assert_in_use(found: Any, tuned: Any) -> None:
    """`found` is the function that the codec calls; it must be from the module of the hand-tuned function."""
    assert found.__module__ == tuned.__module__, f"{found} is not from {tuned.__module__}"


def _outcome(decode: Any, data: bytes) -> Any:
    try:
        return decode(memoryview(data), 0)
    except ProtocolError:
        return ProtocolError
