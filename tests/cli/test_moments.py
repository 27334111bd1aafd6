import re

import pytest

from quire.cli.moments import parse_duration, parse_moment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T23:13:20.500+01:00", 1_700_000_000_500),
        ("2023-11-14 22:13:20+00:00", 1_700_000_000_000),
    ],
)
def test_milliseconds_and_iso_times_are_understood(text: str, expected: int) -> None:
    assert parse_moment(text) == expected


def test_a_time_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC-2")  # POSIX inverts the sign: two hours east
    time.tzset()
    try:
        assert parse_moment("2023-11-15T00:13:20") == 1_700_000_000_000
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "yesterday", "-5", "2023-13-01", "1e9", "²"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid isoformat string|month must be"):
        parse_moment(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H30M", 5_400_000),
        ("P7D", 604_800_000),
        ("pt0.5s", 500),
        ("P1DT1H1M1S", 90_061_000),
    ],
)
def test_durations_are_days_hours_minutes_and_seconds(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1h", "P1Y", "PT1H1D", "-PT1H", "PT"])
def test_anything_else_is_refused_as_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        parse_duration(text)
