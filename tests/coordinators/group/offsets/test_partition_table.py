"""The table finds what was put in, and leaves no empty inner tables behind."""

from hypothesis import given
from hypothesis import strategies as st

from quire.coordinators.group.offsets.partition_table import PartitionTable

PARTITIONS = st.tuples(st.sampled_from("gh"), st.sampled_from("tu"), st.integers(0, 2))


@given(st.lists(st.tuples(st.booleans(), PARTITIONS, st.integers())))
def test_it_is_like_a_dictionary_without_empty_branches(steps: list[tuple[bool, tuple[str, str, int], int]]) -> None:
    table: PartitionTable[int] = PartitionTable()
    model: dict[tuple[str, str, int], int] = {}
    for puts, partition, value in steps:
        if puts:
            table.put(*partition, value)
            model[partition] = value
        else:
            assert table.pop(*partition) == model.pop(partition, None)
    assert {partition: table.get(*partition) for partition in model} == model
    assert set(table.group_ids()) == {group for group, _, _ in model}
    for group in table.group_ids():
        found = {(group, topic, number) for topic, numbers in table.topics_of(group).items() for number in numbers}
        assert found == {partition for partition in model if partition[0] == group}
        assert all(table.topics_of(group).values())
    assert table.topics_of("nowhere") == {}
