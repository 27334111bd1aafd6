"""`quire dump-log` and Apache Kafka's DumpLogSegments agree on every file that Apache Kafka wrote."""

from pathlib import Path

import pytest

from quire.cli.storage.dump.files import dump_file
from quire.cli.storage.dump.read_only import ReadOnlyFile
from quire.cli.storage.dump.wanted import Wanted
from tests.golden.kafka_dump import in_kafkas_words, parse
from tests.golden.recorded import FOLDERS, NAMES, restore


@pytest.mark.parametrize("recorded", FOLDERS, ids=NAMES)
def test_both_tools_say_the_same(recorded: Path, tmp_path: Path) -> None:
    data = restore(recorded, tmp_path / "data")
    dumped = parse((recorded / "dumped.txt").read_text())
    assert any(name.endswith(".log") and said for name, said in dumped.items())
    for name, said in dumped.items():
        facts = list(dump_file(str(data / name), Wanted(records=True), ReadOnlyFile))
        in_same_words = [words for fact in facts if (words := in_kafkas_words(data / name, fact)) is not None]
        assert in_same_words == said, name


@pytest.mark.parametrize("recorded", FOLDERS, ids=NAMES)
def test_quire_finds_nothing_wrong_with_any_file(recorded: Path, tmp_path: Path) -> None:
    data = restore(recorded, tmp_path / "data")
    files = sorted(path for path in data.rglob("*") if path.is_file())
    assert len(files) > 10
    for path in files:
        facts = list(dump_file(str(path), Wanted(records=True), ReadOnlyFile))
        assert not [fact for fact in facts if fact.kind == "problem" or "not_decoded" in fact.fields], path
