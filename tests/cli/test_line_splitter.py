from hypothesis import given, settings
from hypothesis import strategies as st

from quire.cli.line_splitter import LineSplitter


@settings(deadline=None)
@given(st.lists(st.text("a\r\n", max_size=12).map(str.encode)))
def test_lines_are_the_same_however_the_bytes_are_cut(chunks: list[bytes]) -> None:
    splitter = LineSplitter()
    found = [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.end()
    whole = b"".join(chunks)
    *ended, rest = whole.split(b"\n")
    assert found == [line.removesuffix(b"\r") for line in ended] + ([rest] if rest else [])


def test_lines_may_end_as_on_windows_and_other_carriage_returns_belong_to_the_line() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"a\r\nb\rb\r") == [b"a"]
    assert splitter.feed(b"\nc\n") == [b"b\rb", b"c"]


def test_an_empty_line_is_a_line_and_an_end_without_newline_is_one_too() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"\n\nx") == [b"", b""]
    assert splitter.end() == [b"x"]
    assert splitter.end() == []
