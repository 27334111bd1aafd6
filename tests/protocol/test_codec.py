"""Every message in every version survives encoding and decoding; what a version cannot carry is refused."""

import pytest
from hypothesis import HealthCheck, given, settings

from quire.protocol.codec import decode, encode
from quire.protocol.schema import Message
from tests.protocol.every_message import EVERY_VERSION
from tests.protocol.strategies import messages


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION)
def test_what_was_encoded_decodes_to_the_same_message(message: type[Message], version: int) -> None:
    @settings(max_examples=8, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(message, version))
    def round_trip(original: Message) -> None:
        data = encode(original, version)
        decoded = decode(message, data, version)
        assert decoded == original
        assert encode(decoded, version) == data

    round_trip()
