from hypothesis import given, settings
from hypothesis import strategies as st

from quire.cli.line_splitter import LineSplitter


@settings(deadline=None)
@given(st.lists(st.binary(max_size=12)))
def test_lines_are_the_same_however_the_bytes_are_cut(chunks: list[bytes]) -> None:
    splitter = LineSplitter()
    found = [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.end()
    whole = b"".join(chunks)
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert found == expected


def test_carriage_returns_belong_to_the_line() -> None:
    assert LineSplitter().feed(b"a\r\nb\r\n") == [b"a\r", b"b\r"]


def test_an_empty_line_is_a_line_and_an_end_without_newline_is_one_too() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"\n\nx") == [b"", b""]
    assert splitter.end() == [b"x"]
    assert splitter.end() == []
