"""`__transaction_state` as Apache Kafka 4.3.1 wrote it: replayed to the right state, and written byte for byte.

Each record shows which request caused it. For the same request at the same time, Quire writes the same record.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.coordinators.runtime.machine import Caller
from quire.coordinators.runtime.record import Origin, StateRecord, encode_key, encode_value
from quire.coordinators.transaction.machine import TransactionMachine
from quire.coordinators.transaction.transaction_state import TransactionState
from quire.coordinators.transaction.transactions import Markers
from quire.protocol.internal_topics import GROUP_OFFSETS
from quire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from quire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from quire.protocol.messages.end_txn import EndTxnRequest
from quire.protocol.messages.init_producer_id import InitProducerIdRequest
from quire.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from quire.protocol.records import Record, decode_batch, read_header
from tests.coordinators.transaction.sim_cluster import SimCluster

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "kafka-4.3.1"
LOGS = sorted(GOLDEN.glob("*/data/__transaction_state-*/*.log"))


def records_of(log: Path) -> Iterator[Record]:
    content = log.read_bytes()
    position = 0
    while position < len(content):
        header = read_header(content, position)
        yield from decode_batch(content, header)
        position = header.end


def asked_for(machine: TransactionMachine, transactional_id: str, value: TransactionLogValue) -> StateRecord:
    """The record that the machine writes for the request that led to `value`."""
    now_ms = value.transaction_last_update_timestamp_ms
    producer_id, epoch = value.producer_id, value.producer_epoch
    before = machine._transactions.get(transactional_id)
    match TransactionState(value.transaction_status):
        case TransactionState.EMPTY:
            init = InitProducerIdRequest(
                transactional_id=transactional_id, transaction_timeout_ms=value.transaction_timeout_ms
            )
            (record,) = machine.init_producer_id(init, caller(4), now_ms, producer_id).records
        case TransactionState.ONGOING:
            assert before is not None
            added = [each for each in value.transaction_partitions or [] if each.topic not in before.partitions]
            if any(each.topic == GROUP_OFFSETS for each in added):
                offsets = AddOffsetsToTxnRequest(
                    transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch
                )
                (record,) = machine.add_offsets(offsets, caller(3), now_ms, 0).records
            else:
                add = AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=transactional_id,
                    v3_and_below_producer_id=producer_id,
                    v3_and_below_producer_epoch=epoch,
                    v3_and_below_topics=[
                        AddPartitionsToTxnTopic(name=each.topic, partitions=each.partition_ids) for each in added
                    ],
                )
                (record,) = machine.add_partitions(add, caller(3), now_ms).records
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT as state:
            end = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=state is TransactionState.PREPARE_COMMIT,
            )
            (record,) = machine.end_txn(end, caller(4), now_ms).records
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT as state:
            markers = Markers(transactional_id, producer_id, epoch, state is TransactionState.COMPLETE_COMMIT, 0, {})
            (record,) = machine.markers_written(markers, now_ms).records
    return record


def caller(api_version: int) -> Caller:
    return Caller("a client", "here", api_version)


def cluster_with_the_topics_of_golden_logs() -> SimCluster:
    cluster = SimCluster()
    image = cluster.image
    for topic in ("ledger", "orders", "unclean"):
        image.topics_by_name[topic] = image.topics_by_name["t"]
    return cluster


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.parts[-4])
def test_quire_writes_the_very_records_that_kafka_wrote(log: Path) -> None:
    machine = cluster_with_the_topics_of_golden_logs().shard.machine
    for offset, golden in enumerate(records_of(log)):
        record = machine.record_types.decode(golden.key, golden.value)
        assert isinstance(record.key, TransactionLogKey) and isinstance(record.value, TransactionLogValue)
        ours = asked_for(machine, record.key.transactional_id, record.value)
        assert (encode_key(ours.key), encode_value(ours)) == (golden.key, golden.value), (ours, record)
        machine.replay(record, Origin(offset))


def test_kafkas_log_is_replayed_to_the_state_that_kafka_was_in() -> None:
    machine = cluster_with_the_topics_of_golden_logs().shard.machine
    (log,) = [each for each in LOGS if "transactional" in each.parts]
    for offset, golden in enumerate(records_of(log)):
        machine.replay(machine.record_types.decode(golden.key, golden.value), Origin(offset))
    found = {
        each.transactional_id: (each.state, each.producer_id, each.producer_epoch, dict(each.partitions))
        for each in machine._transactions
    }
    assert found == {
        "first": (TransactionState.COMPLETE_COMMIT, 0, 0, {}),
        "second": (TransactionState.COMPLETE_ABORT, 1, 0, {}),
        "open": (TransactionState.ONGOING, 2, 0, {"ledger": [0]}),
    }
