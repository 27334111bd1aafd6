"""Which commands are recognised as repetitions."""

from hypothesis import given
from hypothesis import strategies as st

from quire_samples.inventory.commands import Command, Kind, Line
from quire_samples.inventory.events import Source
from quire_samples.inventory.seen import Seen


def command(name: str) -> Command:
    return Command(name, Kind.ORDER, (Line("pen", 1),))


def test_a_command_is_recognised_as_far_back_as_the_window_reaches_and_no_further() -> None:
    seen = Seen(window=10)
    seen.add(command("a"), Source(0, 100))
    assert seen.find("a", Source(0, 110)) == (100, command("a").digest)
    assert seen.find("a", Source(0, 111)) is None
    assert seen.find("a", Source(1, 101)) is None


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 4)), max_size=60), st.integers(1, 12))
def test_it_agrees_with_a_look_at_the_whole_partition(commands: list[tuple[str, int]], window: int) -> None:
    seen = Seen(window)
    log: list[tuple[str, int]] = []
    offset = 0
    for name, step in commands:
        offset += step
        before = [at for other, at in log if other == name and offset - window <= at]
        found = seen.find(name, Source(0, offset))
        assert (None if found is None else found[0]) == (before[-1] if before else None)
        seen.add(command(name), Source(0, offset))
        log.append((name, offset))
        assert len(seen) <= window + 1


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=60), st.integers(1, 12), st.data())
def test_a_reloaded_window_recognises_the_same_commands(names: list[str], window: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(names)))
    whole, again = Seen(window), Seen(window)
    for offset in range(cut):
        whole.add(command(names[offset]), Source(0, offset))
    for offset in range(again.begin(cut, 0), cut):
        again.add(command(names[offset]), Source(0, offset))
    for offset in range(cut, len(names)):
        source = Source(0, offset)
        assert whole.find(names[offset], source) == again.find(names[offset], source)
        whole.add(command(names[offset]), source)
        again.add(command(names[offset]), source)
