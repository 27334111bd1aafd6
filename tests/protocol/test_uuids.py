import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.protocol import uuids


def test_the_metadata_topic_has_kafkas_id() -> None:
    assert uuids.to_text(uuids.METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuids.to_text(uuids.ZERO) == "AAAAAAAAAAAAAAAAAAAAAA"


@given(st.binary(min_size=16, max_size=16))
def test_text_reads_back(uuid: bytes) -> None:
    text = uuids.to_text(uuid)
    assert len(text) == 22
    assert uuids.from_text(text) == uuid


def test_the_spare_bits_of_the_last_character_are_ignored() -> None:
    assert uuids.from_text("MkU3OEVBNTcwNTJENDM2Qk") == uuids.from_text("MkU3OEVBNTcwNTJENDM2Qg")


@pytest.mark.parametrize("text", ["", "abc", "A" * 21, "A" * 23, "A" * 24, "A+" * 11, "A/" * 11, "!" * 22, "é" * 22])
def test_an_invalid_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a uuid"):
        uuids.from_text(text)
