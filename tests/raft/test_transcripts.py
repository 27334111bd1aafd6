"""The transcripts in `transcripts/`, replayed and compared word for word (`tests.transcripts`)."""

from pathlib import Path

import pytest

from tests.raft.memory_quorum import MemoryQuorum
from tests.transcripts import check, stories


class Play:
    """One transcript: a quorum and the commands to it."""

    def __init__(self, voters: int, observers: int = 0, *, dynamic: bool = False) -> None:
        self.quorum = MemoryQuorum(voters, observers, dynamic=dynamic)
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
            case "quietly", [hidden, *rest]:
                self.command(hidden, rest)
                self.story.clear()
            case "cut-off", ids:
                self.quorum.cut_off = [int(id_) for id_ in ids]
            case "cut", pairs:
                self.quorum.cuts = {(int(one), int(other)) for one, _, other in (pair.partition(">") for pair in pairs)}
            case "deliver", [sender, to]:
                self.quorum.deliver_between(int(sender), int(to))
            case "slow-snapshots", []:
                self.quorum.slow_snapshots = True
            case "fetch-max", [count]:
                self.quorum.fetch_max = int(count)
            case "snapshot", [id_, offset]:
                self.quorum.snapshot(int(id_), int(offset))
            case "wait", [duration_ms]:
                self.quorum.wait(float(duration_ms))
            case (("stabilize" | "status"), []):
                getattr(self.quorum, name)()
            case (("crash" | "kill" | "wipe" | "campaign" | "win" | "resign" | "sync" | "upgrade" | "check"), [id_]):
                getattr(self.quorum, name)(int(id_))
            case "fetch-snapshot", [id_]:
                self.quorum.fetch_snapshot(int(id_))
            case (("lose-connection" | "add-voter" | "remove-voter"), [id_, other]):
                getattr(self.quorum, name.replace("-", "_"))(int(id_), int(other))
            case _:
                raise AssertionError(f"no such command: {name} {' '.join(words)}")


def begin(words: list[str]) -> Play:
    assert words[0] == "quorum", "a story begins with: quorum <voters> [<observers>] [dynamic]"
    dynamic = words[-1] == "dynamic"
    return Play(*map(int, words[1 : len(words) - dynamic]), dynamic=dynamic)


@pytest.mark.parametrize("path", stories(Path(__file__).parent / "transcripts"), ids=lambda path: path.stem)
def test_the_machine_follows_the_transcript(path: Path) -> None:
    check(path, begin)
