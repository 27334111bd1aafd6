"""The records of `__transaction_state`.

A key is preceded by its API_KEY as an int16, a value by its version as an int16; a null value is a tombstone.
"""

from quire.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string


class TransactionLogKey(Message):
    API_KEY = 0
    VERSIONS = (0, 0)
    FLEXIBLE = None

    transactional_id: str = string("0")


class PartitionsSchema(Struct):
    topic: str = string("0+")
    partition_ids: list[int] = array(int32, "0+")


class TransactionLogValue(Message):
    API_KEY = 0
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    producer_id: int = int64("0+")
    previous_producer_id: int = int64("1+", tag=0, tagged="1+", default=-1)
    next_producer_id: int = int64("1+", tag=1, tagged="1+", default=-1)
    producer_epoch: int = int16("0+")
    next_producer_epoch: int = int16("1+", tag=3, tagged="1+", default=-1)
    transaction_timeout_ms: int = int32("0+")
    transaction_status: int = int8("0+")
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, "0+", nullable="0+")
    transaction_last_update_timestamp_ms: int = int64("0+")
    transaction_start_timestamp_ms: int = int64("0+")
    client_transaction_version: int = int16("1+", tag=2, tagged="1+")


KEY_TYPES: dict[int, type[Message]] = {
    0: TransactionLogKey,
}

VALUE_TYPES: dict[int, type[Message]] = {
    0: TransactionLogValue,
}
