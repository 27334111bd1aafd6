"""Java properties files are read as Java reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.config.errors import ConfigError
from quire.config.properties import read_properties


def values(text: str) -> dict[str, str]:
    return {name: item.value for name, item in read_properties(text).items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b c ", {"a": "b c "}),
        ("a:b", {"a": "b"}),
        ("a : b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\t=\tb", {"a": "b"}),
        ("  a=b", {"a": "b"}),
        ("a==b", {"a": "=b"}),
        ("a=:b", {"a": ":b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("# a=b\n ! c=d\n\n", {}),
        ("a=#b", {"a": "#b"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b,\\\n    c,\\\n  d", {"a": "b,c,d"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# not a comment", {"a": "b# not a comment"}),
        ("a=b\\", {"a": "b"}),
        ("a\\ b\\=c\\:d=e", {"a b=c:d": "e"}),
        ("a=\\t\\n\\r\\f\\u0041\\z\\\\", {"a": "\t\n\r\fAz\\"}),
        ("listeners=PLAINTEXT://:9092,CONTROLLER://:9093", {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}),
    ],
)
def test_each_form_of_line(text: str, expected: dict[str, str]) -> None:
    assert values(text) == expected


def test_each_setting_knows_its_line() -> None:
    found = read_properties("# first\n\na=1\nb=2,\\\n  3\nc=4\n")
    assert [(name, item.line) for name, item in found.items()] == [("a", 3), ("b", 4), ("c", 6)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12G4", "a=\\u"])
def test_a_broken_character_code_is_an_error_that_names_the_line(text: str) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        read_properties("x=1\n" + text)


def escaped(text: str, special: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if c in special + "\\" or not c.isprintable() else c for c in text)


TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, TEXT))
def test_anything_escaped_reads_back(settings: dict[str, str]) -> None:
    lines = [f"{escaped(name, ' =:#!')}={escaped(value, ' ')}" for name, value in settings.items()]
    assert values("\n".join(lines)) == settings
