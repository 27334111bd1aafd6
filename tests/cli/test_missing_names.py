"""A command with several names reports every one that does not exist, not only the first."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from quire.console.failure import EXIT_NOT_FOUND
from tests.cli.command import quire


@pytest.fixture(scope="module", autouse=True)
def topic(servers: str) -> str:
    assert quire("topics", "create", "there", "-p", "2", servers=servers).returncode == 0
    return "there"


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "describe", "missing-1", "there", "missing-2"),
        ("topics", "delete", "missing-1", "missing-2", "--yes"),
        ("groups", "describe", "missing-1", "missing-2"),
        ("groups", "delete", "missing-1", "missing-2", "--yes"),
        ("groups", "reset-offsets", "g", "-t", "missing-1", "-t", "missing-2:0", "-t", "there", "--to-earliest"),
        ("transactions", "describe", "missing-1", "missing-2"),
        ("transactions", "describe-producers", "missing-1", "there", "missing-2:3"),
        ("transactions", "find-hanging", "missing-1", "missing-2"),
        ("configs", "describe", "topic", "there", "missing-1", "retention.ms", "missing-2"),
        ("configs", "alter", "topic", "there", "--unset", "missing-1", "--unset", "missing-2"),
        ("topics", "alter", "there", "--unset", "missing-1", "--unset", "missing-2"),
        ("dlq", "list", "missing-1", "missing-2"),
        ("verify", "missing-1", "missing-2"),
        ("dump-log", "missing-1", "missing-2"),
        ("pipelines", "status", "missing-1", "missing-2.yaml"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_every_missing_name_has_a_line(servers: str, arguments: Sequence[str]) -> None:
    result = quire(*arguments, servers=servers)
    assert result.returncode == EXIT_NOT_FOUND
    first, second = result.stderr.decode().splitlines()
    assert first.startswith("quire: ") and "missing-1" in first and "missing-2" not in first
    assert second.startswith("quire: ") and "missing-2" in second and "missing-1" not in second


def test_every_missing_partition_has_a_line(servers: str) -> None:
    result = quire("consume", "there", "-p", "5", "-p", "0", "-p", "7", servers=servers)
    assert result.returncode == EXIT_NOT_FOUND
    assert ["partition 5" in line or "partition 7" in line for line in result.stderr.decode().splitlines()] == [
        True
    ] * 2


def test_existing_names_are_suggested_beside_the_missing_one(servers: str) -> None:
    result = quire("topics", "describe", "missing-1", "there", "missing-2", servers=servers)
    assert b"topic there" in result.stdout


def test_nothing_is_verified_if_a_directory_is_missing(tmp_path: Path) -> None:
    result = quire("verify", str(tmp_path), str(tmp_path / "gone"))
    assert (result.returncode, result.stdout) == (EXIT_NOT_FOUND, b"")


@pytest.mark.parametrize(
    "arguments",
    [
        ("consume", "their"),
        ("topics", "describe", "their"),
        ("topics", "delete", "their", "--yes"),
        ("groups", "reset-offsets", "g", "--topic", "their", "--to-earliest"),
        ("transactions", "describe-producers", "their"),
        ("configs", "describe", "topic", "their"),
        ("configs", "alter", "topic", "their", "--set", "retention.ms=1"),
        ("configs", "alter", "topic", "their", "--unset", "retention.ms"),
        ("topics", "alter", "their", "--set", "retention.ms=1"),
        ("topics", "alter", "their", "--partitions", "9"),
        ("explain", "their"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_the_nearest_topic_is_suggested(servers: str, arguments: Sequence[str]) -> None:
    result = quire(*arguments, servers=servers)
    assert (result.returncode, result.stdout) == (EXIT_NOT_FOUND, b"")
    assert result.stderr == b"quire: topic their does not exist; did you mean there?\n"


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("consume", "orders-of-2031"), "create it with `quire topics create orders-of-2031`."),
        (("topics", "describe", "orders-of-2031"), "create it with `quire topics create orders-of-2031`."),
        (("explain", "orders-of-2031"), "create it with `quire topics create orders-of-2031`."),
        (("topics", "delete", "orders-of-2031", "--yes"), "`quire topics list` shows the topics."),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_without_a_near_name_the_error_says_what_to_do(servers: str, arguments: Sequence[str], advice: str) -> None:
    result = quire(*arguments, servers=servers)
    assert (result.returncode, result.stdout) == (EXIT_NOT_FOUND, b"")
    assert result.stderr.decode() == f"quire: topic orders-of-2031 does not exist; {advice}\n"
