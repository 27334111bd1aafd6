import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol import varints
from quire.protocol.errors import ProtocolError


@given(st.integers(0, 2**32 - 1))
def test_a_written_varint_is_read_back(value: int) -> None:
    out = bytearray(b"x")
    varints.write(out, value)
    assert varints.read(out, 1) == (value, len(out))


@pytest.mark.parametrize(
    ("value", "data"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")]
)
def test_seven_bits_go_into_each_byte(value: int, data: str) -> None:
    out = bytearray()
    varints.write(out, value)
    assert out.hex() == data


@pytest.mark.parametrize("data", ["ffffffff10", "ffffffffff", "8080808080"])
def test_more_than_32_bits_are_refused(data: str) -> None:
    with pytest.raises(ProtocolError, match=r"^a varint has more than 32 bits$"):
        varints.read(bytes.fromhex(data), 0)


def test_the_end_of_the_data_is_an_index_error_for_the_decoder_to_translate() -> None:
    with pytest.raises(IndexError):
        varints.read(b"\x80", 0)
