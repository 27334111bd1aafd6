"""Groups and transactions in files of Apache Kafka are replayed to the state that Apache Kafka reported."""

import json
from pathlib import Path

import pytest

from quire.testing import Cluster
from tests.golden.coordinated import when_replayed
from tests.golden.recorded import FOLDERS, restore
from tests.golden.test_golden_directories import AS_IT_IS
from tests.wire.clients import eventually

COORDINATED = [folder for folder in FOLDERS if (folder / "coordinated.json").exists()]


@pytest.mark.parametrize("recorded", COORDINATED, ids=lambda folder: folder.name)
def test_quires_coordinators_know_what_apache_kafkas_knew(recorded: Path, tmp_path: Path) -> None:
    expected = json.loads((recorded / "coordinated.json").read_text())
    with Cluster(data_dir=restore(recorded, tmp_path / "data"), config=AS_IT_IS) as quire:
        eventually(lambda: when_replayed(quire.bootstrap_servers) == expected)
        quire.kill()
        quire.restart()
        eventually(lambda: when_replayed(quire.bootstrap_servers) == expected)


def test_there_is_one_with_every_kind_of_state() -> None:
    states = [json.loads((folder / "coordinated.json").read_text()) for folder in COORDINATED]
    groups = [group for state in states for group in state["groups"].values()]
    assert {(group["type"], group["state"]) for group in groups} >= {
        ("classic", "Empty"),
        ("classic", "Stable"),
        ("consumer", "Empty"),
        ("consumer", "Stable"),
    }
    transactions = [each for state in states for each in state["transactions"].values()]
    assert {each["state"] for each in transactions} >= {"Empty", "Ongoing", "CompleteCommit", "CompleteAbort"}
