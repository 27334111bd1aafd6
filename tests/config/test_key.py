"""Values are read and written as Kafka does, and refused with a sentence that says what is allowed."""

import pytest

from quire.config.allowed import THROTTLED_REPLICAS, Allowed, any_of, at_least, between, one_of, one_of_any_case
from quire.config.errors import ConfigError
from quire.config.key import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigKey,
    ConfigType,
)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (BOOLEAN, "true", True),
        (BOOLEAN, " FALSE ", False),
        (INT, " 5 ", 5),
        (INT, "+5", 5),
        (INT, "-2147483648", -(2**31)),
        (LONG, "9223372036854775807", 2**63 - 1),
        (SHORT, "32767", 32767),
        (DOUBLE, "0.5", 0.5),
        (DOUBLE, "1", 1.0),
        (STRING, "  as it is ", "as it is"),
        (LIST, "", ()),
        (LIST, "a", ("a",)),
        (LIST, " a , b,a", ("a", "b")),
        (PASSWORD, " secret ", " secret "),
    ],
)
def test_text_is_read_as_kafka_reads_it(type_: ConfigType, text: str, value: object) -> None:
    parsed = ConfigKey("key", type_, None).parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (BOOLEAN, "yes", "true or false"),
        (INT, "", "a whole number of 32 bits"),
        (INT, "5.0", "a whole number of 32 bits"),
        (INT, "1_000", "a whole number of 32 bits"),
        (INT, "2147483648", "a whole number of 32 bits"),
        (INT, "٣", "a whole number of 32 bits"),
        (SHORT, "32768", "a whole number of 16 bits"),
        (LONG, "9" * 5000, "a whole number of 64 bits"),
        (DOUBLE, "half", "a number"),
        (DOUBLE, "1_0.5", "a number"),
        (LIST, "a,,b", "words separated by commas, none of them empty"),
    ],
)
def test_text_of_another_type_is_refused_with_what_is_expected(type_: ConfigType, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ConfigKey("the.key", type_, None).parse(text)
    assert caught.value.message == f"the.key={text} is not allowed: it must be {expected}."
    assert caught.value.key == "the.key"


@pytest.mark.parametrize(
    ("type_", "allowed", "good", "bad", "text"),
    [
        (INT, at_least(3), ["3", "4"], ["2"], "at least 3"),
        (INT, between(1, 9, also=-1), ["1", "9", "-1"], ["0", "10", "-2"], "from 1 to 9, or -1"),
        (DOUBLE, between(0, 1), ["0", "0.5", "1"], ["1.1", "-0.1", "nan"], "from 0 to 1"),
        (STRING, one_of("gzip", "zstd"), ["gzip"], ["GZIP", ""], "one of gzip, zstd"),
        (STRING, one_of_any_case("UPGRADE"), ["upgrade", "UPGRADE"], ["x"], "one of UPGRADE"),
        (LIST, one_of("a", "b"), ["a", "b,a"], ["", "a,c"], "one of a, b"),
        (LIST, any_of("a", "b"), ["", "a,b"], ["c"], "one of a, b"),
        (LIST, THROTTLED_REPLICAS, ["", "*", "0:1,2:3"], ["none", "*,0:1", "0", "a:b"], "*, or pairs like 0:1,0:2"),
    ],
)
def test_values_outside_a_rule_are_refused(
    type_: ConfigType, allowed: Allowed, good: list[str], bad: list[str], text: str
) -> None:
    key = ConfigKey("key", type_, None, allowed)
    for item in good:
        key.parse(item)
    for item in bad:
        with pytest.raises(ConfigError) as caught:
            key.parse(item)
        assert text in caught.value.message


def test_values_are_written_as_kafka_writes_them() -> None:
    def written(type_: ConfigType, value: bool | int | float | str | tuple[str, ...] | None) -> str | None:
        return ConfigKey("key", type_, None).format(value)

    assert written(BOOLEAN, True) == "true"
    assert written(INT, -1) == "-1"
    assert written(DOUBLE, 0.5) == "0.5"
    assert written(DOUBLE, 1.7976931348623157e308) == "1.7976931348623157E308"
    assert written(LIST, ("compact", "delete")) == "compact,delete"
    assert written(LIST, ()) == ""
    assert written(LONG, None) is None


def test_a_password_is_never_shown_in_an_error() -> None:
    key = ConfigKey("ssl.key.password", PASSWORD, None, one_of("only this"))
    with pytest.raises(ConfigError) as caught:
        key.parse("hunter2")
    assert "hunter2" not in str(caught.value)
    assert "[hidden]" in str(caught.value)
