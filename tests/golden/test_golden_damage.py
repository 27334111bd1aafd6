"""If any byte of a recorded file is changed, `quire dump-log` still reads the file to its end and reports what it
finds."""

from pathlib import Path

import pytest

from quire.cli.storage.dump.facts import Fact
from quire.cli.storage.dump.files import dump_file
from quire.cli.storage.dump.wanted import Wanted
from quire.seams import ReadableFile
from tests.cli.storage.dump.memory_file import MemoryFile
from tests.golden.recorded import FOLDERS

(RECORDED,) = (folder / "data" for folder in FOLDERS if folder.name == "transactional")
FILES = [
    "meta.properties",
    "recovery-point-offset-checkpoint",
    ".kafka_cleanshutdown",
    "bootstrap.checkpoint",
    "__cluster_metadata-0/quorum-state",
    "__consumer_offsets-0/00000000000000000000.log",
    "ledger-0/partition.metadata",
    "ledger-0/leader-epoch-checkpoint",
    "ledger-0/00000000000000000003.log",
    "ledger-0/00000000000000000003.timeindex",
    "ledger-0/00000000000000000003.txnindex",
    "ledger-0/00000000000000000003.snapshot",
]
CHECKED = (".log", ".snapshot", ".checkpoint")
"""Files with a checksum."""


def facts_of(path: str, content: bytes) -> list[Fact]:
    def opened(asked: str) -> ReadableFile:
        return MemoryFile(content if asked == path else Path(asked).read_bytes(), asked)

    return list(dump_file(path, Wanted(records=True), opened))


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_is_shown_or_found_and_never_ends_the_dump(name: str) -> None:
    path = str(RECORDED / name)
    content = (RECORDED / name).read_bytes()
    whole = facts_of(path, content)
    assert not any(fact.kind == "problem" for fact in whole)
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 0x40
        found = facts_of(path, bytes(changed))
        assert not name.endswith(CHECKED) or found != whole, f"byte {position} makes no difference"


@pytest.mark.parametrize("name", FILES)
def test_a_file_may_end_anywhere(name: str) -> None:
    path = str(RECORDED / name)
    content = (RECORDED / name).read_bytes()
    for size in range(0, len(content), 7):
        facts_of(path, content[:size])
