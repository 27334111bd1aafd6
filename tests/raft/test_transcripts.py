"""The stories in `transcripts/`, played and compared word for word (`tests.transcripts`)."""

from pathlib import Path

import pytest

from tests.raft.memory_quorum import MemoryQuorum
from tests.transcripts import check, stories


class Play:
    """One story: a quorum, and what it is told to do."""

    def __init__(self, voters: int, observers: int = 0) -> None:
        self.quorum = MemoryQuorum(voters, observers)
        self.story = self.quorum.story

    def command(self, name: str, words: list[str]) -> None:
        match name, words:
            case "start", ids:
                for id_ in ids:
                    self.quorum.start(int(id_))
            case "elect", [id_]:
                self.quorum.elect(int(id_))
            case "propose", [id_, *payloads]:
                for payload in payloads:
                    self.quorum.propose(int(id_), payload)
            case "cut-off", ids:
                self.quorum.cut_off = [int(id_) for id_ in ids]
            case "snapshot", [id_, offset]:
                self.quorum.snapshot(int(id_), int(offset))
            case "wait", [duration_ms]:
                self.quorum.wait(float(duration_ms))
            case (("stabilize" | "status"), []):
                getattr(self.quorum, name)()
            case (("crash" | "campaign" | "resign" | "sync"), [id_]):
                getattr(self.quorum, name)(int(id_))
            case _:
                raise AssertionError(f"no such command: {name} {' '.join(words)}")


def begin(words: list[str]) -> Play:
    assert words[0] == "quorum", "a story begins with: quorum <voters> [<observers>]"
    return Play(*map(int, words[1:]))


@pytest.mark.parametrize("path", stories(Path(__file__).parent / "transcripts"), ids=lambda path: path.stem)
def test_the_machine_acts_as_told_in_the_transcript(path: Path) -> None:
    check(path, begin)
