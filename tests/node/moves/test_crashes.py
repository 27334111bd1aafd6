"""A crash before any call to the disk, from the request to the removal of the original, loses and doubles nothing."""

from functools import partial

import pytest

from quire.protocol.errors import ErrorCode
from simulator.disk import Crashed, SimDisk
from simulator.random import SimRandom
from tests.node.conftest import SimulatedNode
from tests.node.moves.moving import (
    TWO,
    ask_to_move,
    folders,
    is_quiet,
    other_of,
    path_of,
    produce,
    values_of,
    with_records,
)

RECORDS = 8
MOST_CALLS = 1_000

SETTINGS = {"file.delete.delay.ms": "1000"}


class Story:
    """A node that moves a replica, and is written to, until it crashes before the call `crash_after`."""

    def __init__(self, crash_after: int) -> None:
        self.node = with_records(RECORDS, internal_segment_bytes="400", flush_messages="1", file_delete_delay_ms="1000")
        self.acknowledged: list[bytes | None] = [f"v{number}".encode() for number in range(RECORDS)]
        self.written = list(self.acknowledged)
        self.target = other_of(self.node)
        self.answered = False
        self.node.disk.calls.crash_at = self.node.disk.operations + crash_after

    def runs_to_its_end(self) -> bool:
        try:
            assert ask_to_move(self.node, self.target) == ErrorCode.NONE
            self.answered = True
            while not is_quiet(self.node):
                if len(self.written) < 2 * RECORDS:
                    self._write()
                self.node.clock.run_for(3)
            self.node.clock.run_for(2_000)
        except Crashed:
            return False
        self.node.disk.calls.crash_at = None
        return True

    def _write(self) -> None:
        value = f"during {len(self.written)}".encode()
        self.written.append(value)
        assert produce(self.node, value) == ErrorCode.NONE
        self.acknowledged.append(value)


def crashed(story: Story, how: str) -> SimDisk:
    disk = story.node.disk
    return disk.kill() if how == "kill" else disk.crash(SimRandom(int(how.rpartition(" ")[2])), reorder=True)


@pytest.mark.parametrize("how", ["kill", "power loss 1", "power loss 2", "power loss 3"])
def test_a_crash_at_any_call_loses_nothing_and_the_move_goes_on(how: str) -> None:
    for crash_after in range(1, MOST_CALLS):
        story = Story(crash_after)
        if story.runs_to_its_end():
            assert crash_after > 100, "the move has many calls"
            break
        again = SimulatedNode(crashed(story, how), TWO, seed=crash_after).start()
        found = values_of(again)
        assert found in (story.acknowledged, story.written), (crash_after, how)
        again.clock.run_until(partial(is_quiet, again))
        again.clock.run_for(120_000)
        assert produce(again, b"after") == ErrorCode.NONE
        assert values_of(again) == [*found, b"after"], (crash_after, how)
        if story.answered and how == "kill":
            assert path_of(again) == story.target, crash_after
        both = folders(again.disk, "/one") + folders(again.disk, "/two")
        assert both == ["t-0"], (crash_after, how)
        assert "quire-move" not in again.disk.list_dir(f"{path_of(again)}/t-0"), (crash_after, how)
    else:
        pytest.fail("the move has no end")
