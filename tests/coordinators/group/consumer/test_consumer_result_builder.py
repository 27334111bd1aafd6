"""The builder shows the group as its records will leave it, without changing the group that others see."""

from quire.coordinators.group.consumer import records
from quire.coordinators.group.consumer.consumer_group import ConsumerGroup
from quire.coordinators.group.consumer.consumer_result_builder import ConsumerResultBuilder
from quire.coordinators.runtime.record import tombstone
from quire.protocol.messages.group_records import GroupMetadataKey


def test_later_steps_see_what_earlier_ones_wrote() -> None:
    group = ConsumerGroup("g")
    builder = ConsumerResultBuilder(group)
    builder.write(records.group_metadata("g", 3, 0))
    assert builder.group.group_epoch == 3
    assert group.group_epoch == 0


def test_without_a_record_there_is_no_copy() -> None:
    group = ConsumerGroup("g")
    assert ConsumerResultBuilder(group).group is group


def test_records_of_the_other_protocol_are_written_and_not_applied() -> None:
    group = ConsumerGroup("g")
    builder = ConsumerResultBuilder(group)
    builder.write_conversion(tombstone(GroupMetadataKey(group="g")))
    assert builder.group is group
    builder.write(records.group_metadata("g", 3, 0))
    assert [type(record.key).__name__ for record in builder.result(None).records] == [
        "GroupMetadataKey",
        "ConsumerGroupMetadataKey",
    ]
