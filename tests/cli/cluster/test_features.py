"""`quire features` on a real node."""

import json
import subprocess

import pytest

from tests.cli.command import quire


def levels(servers: str) -> dict[str, int]:
    done = quire("features", "list", "--json", servers=servers)
    assert done.returncode == 0, done.stderr
    return {each["name"]: each["level"] for each in json.loads(done.stdout)}


def features(servers: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return quire("features", *arguments, servers=servers)


def test_features_are_listed_with_their_levels(servers: str) -> None:
    assert levels(servers)["group.version"] == 1
    text = quire("features", "list", servers=servers).stdout.decode()
    assert any(line.split()[:3] == ["metadata.version", "30", "(4.3-IV0)"] for line in text.splitlines())


def test_a_feature_is_downgraded_and_upgraded(servers: str) -> None:
    tried = features(servers, "downgrade", "group.version=0", "--validate-only")
    assert tried.stdout.decode() == "group.version: could change from level 1 to 0\n"
    assert levels(servers)["group.version"] == 1
    assert features(servers, "downgrade", "group.version=0").stdout.decode() == (
        "group.version: changed from level 1 to 0\n"
    )
    assert levels(servers)["group.version"] == 0
    done = features(servers, "upgrade", "group.version=1", "metadata.version=4.3", "--json")
    assert json.loads(done.stdout) == [
        {"name": "group.version", "from": 0, "to": 1, "changed": True},
        {"name": "metadata.version", "from": 30, "to": 30, "changed": False},
    ]
    assert levels(servers)["group.version"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["downgrade", "metadata.version=4.2-IV1"], 1, "it can go down to 30 at most"),
        (["downgrade", "metadata.version=29", "--unsafe"], 1, "an unsafe downgrade does not exist"),
        (["downgrade", "kraft.version=0"], 1, "kraft.version cannot go down from 1 to 0"),
        (["upgrade", "group.version=0"], 1, "must be asked for as a downgrade"),
        (["upgrade", "metadata.version=31"], 1, "levels 7 to 30 are known"),
        (["upgrade", "group.version=1", "no.feature=1"], 4, "there is no feature no.feature; the broker knows"),
        (["upgrade", "metadata.version=5.0"], 2, "'5.0' is no metadata.version: write a level, 4.2 or 4.2-IV1"),
        (["upgrade", "group.version"], 2, "'group.version' is not FEATURE=LEVEL"),
        (["upgrade"], 2, "Missing argument"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_cannot_be_changed_is_named(servers: str, arguments: list[str], code: int, why: str) -> None:
    before = levels(servers)
    done = features(servers, *arguments)
    assert (done.returncode, why in done.stderr.decode()) == (code, True), done.stderr
    assert levels(servers) == before
