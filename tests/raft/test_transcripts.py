"""The stories in `transcripts/`, played and compared word for word.

Each block of a file is a command, a line of dashes and what happened. `QUIRE_REWRITE=1 pytest tests/raft` writes what
happens now in place of what is there; read the difference before you commit it.
"""

import os
from pathlib import Path

import pytest

from tests.raft.memory_quorum import MemoryQuorum

STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
LINE = "----"


def play(text: str) -> str:
    quorum: MemoryQuorum | None = None
    told: list[str] = []
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        told.extend(line for line in lines if line.startswith("#"))
        commands = [line for line in lines if not line.startswith("#")]
        if not commands:
            told.append("")
            continue
        name, *words = commands[0].split()
        if name == "quorum":
            quorum = MemoryQuorum(*map(int, words))
        else:
            assert quorum is not None, "a story begins with: quorum <voters> [<observers>]"
            command(quorum, name, words)
        assert quorum is not None
        told += [commands[0], LINE, *(quorum.story or ["ok"]), ""]
        quorum.story.clear()
    return "\n".join(told)


def command(quorum: MemoryQuorum, name: str, words: list[str]) -> None:
    match name, words:
        case "start", ids:
            for id_ in ids:
                quorum.start(int(id_))
        case "elect", [id_]:
            quorum.elect(int(id_))
        case "propose", [id_, *payloads]:
            for payload in payloads:
                quorum.propose(int(id_), payload)
        case "cut-off", ids:
            quorum.cut_off = [int(id_) for id_ in ids]
        case "snapshot", [id_, offset]:
            quorum.snapshot(int(id_), int(offset))
        case "wait", [duration_ms]:
            quorum.wait(float(duration_ms))
        case (("stabilize" | "status"), []):
            getattr(quorum, name)()
        case (("crash" | "campaign" | "resign" | "sync"), [id_]):
            getattr(quorum, name)(int(id_))
        case _:
            raise AssertionError(f"no such command: {name} {' '.join(words)}")


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_machine_acts_as_told_in_the_transcript(path: Path) -> None:
    told = path.read_text()
    happened = play(told)
    if os.environ.get("QUIRE_REWRITE"):
        path.write_text(happened)
    else:
        assert happened == told
