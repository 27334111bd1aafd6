"""Groups for the assignors, and the invariants of every assignment."""

from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from quire.coordinators.group.consumer.assignors import AssignedMember, Assignment
from quire.coordinators.group.consumer.assignors.assignor import PartitionCounts

Members = dict[str, AssignedMember]


def topic(number: int) -> bytes:
    return number.to_bytes(16)


def members(*names: str, topics: Iterable[int], held: Mapping[str, Assignment] | None = None) -> Members:
    """Members that all subscribe to the same topics."""
    subscribed = frozenset(map(topic, topics))
    return {name: AssignedMember(subscribed, (held or {}).get(name, {})) for name in names}


def holding(group: Members, assigned: Mapping[str, Assignment]) -> Members:
    """The same group, in which each member holds its assignment."""
    return {name: AssignedMember(member.topics, assigned.get(name, {})) for name, member in group.items()}


def partitions(assignment: Assignment) -> set[tuple[bytes, int]]:
    return {(each, partition) for each, numbers in assignment.items() for partition in numbers}


def load(assignment: Assignment) -> int:
    return sum(map(len, assignment.values()))


def moved(before: Mapping[str, Assignment], after: Mapping[str, Assignment]) -> int:
    """How many partitions were taken from members that are still in the group."""
    return sum(len(partitions(before[name]) - partitions(after[name])) for name in before if name in after)


def check_complete(group: Members, counts: PartitionCounts, assigned: Mapping[str, Assignment]) -> None:
    """Every partition with subscribers has one owner, which is one of them; no other partition has an owner."""
    assert assigned.keys() == group.keys()
    owners: dict[tuple[bytes, int], str] = {}
    for name, assignment in assigned.items():
        assert all(assignment.values()), "a topic without partitions"
        for each in partitions(assignment):
            assert each not in owners, f"{each} belongs to {owners[each]} and {name}"
            assert each[0] in group[name].topics
            owners[each] = name
    wanted = {each for member in group.values() for each in member.topics if each in counts}
    assert owners.keys() == {(each, number) for each in wanted for number in range(counts[each])}


@st.composite
def counts_of_topics(draw: st.DrawFn, most_topics: int = 5, most_partitions: int = 12) -> dict[bytes, int]:
    sizes = draw(st.lists(st.integers(0, most_partitions), max_size=most_topics))
    return {topic(number): size for number, size in enumerate(sizes)}


@st.composite
def held_by(draw: st.DrawFn, names: list[str]) -> dict[str, Assignment]:
    """Arbitrary input: deleted partitions, topics without subscribers, two owners of one partition."""
    numbers = st.frozensets(st.integers(0, 15), min_size=1)
    anything = st.dictionaries(st.integers(0, 6).map(topic), numbers, max_size=4)
    return {name: draw(anything) for name in names}


@st.composite
def any_group(draw: st.DrawFn, most_members: int = 6, most_topics: int = 5) -> Members:
    names = [f"member-{number}" for number in range(draw(st.integers(1, most_members)))]
    held = draw(held_by(names))
    # One topic more than exists: members may subscribe to a topic before it is created.
    subscriptions = st.frozensets(st.integers(0, most_topics).map(topic))
    if draw(st.booleans()):
        shared = draw(subscriptions)
        return {name: AssignedMember(shared, held[name]) for name in names}
    return {name: AssignedMember(draw(subscriptions), held[name]) for name in names}
