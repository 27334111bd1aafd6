"""Sequence numbers of a transaction that has ended: what Apache Kafka's Java producer does when they are refused.

The Java producer does not use them again by itself, as librdkafka does. Here a batch with the next number is written
in its name, in its first transaction, so that the batch of its second one looks like a repetition.

After the refusal it aborts, and begins with number 0 in the same epoch, because UNKNOWN_PRODUCER_ID tells it that the
partition has forgotten its producer id. That is refused too. When `delivery.timeout.ms` has passed, it aborts again and
gets a new epoch. This is slow, but no record is lost.
"""

from pathlib import Path

from interop.apache_kafka import ApacheKafka
from interop.scenarios import Server, create, wait_until
from interop.test_streams_and_connect import committed
from quire.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from quire.protocol.messages.produce import ProduceResponse
from quire.testing import Cluster, WireConnection
from tests.wire.batches import batch
from tests.wire.raw import NAMES_UP_TO, produce_request

PROGRAM = Path(__file__).parent / "java" / "TwoTransactions.java"
TRANSACTIONAL = 1 << 4
TOPIC = "repeated"


def write_in_its_name(address: str) -> None:
    """A batch with the next sequence number of the Java producer, in its open transaction."""
    with WireConnection(address) as connection:
        described = connection.call(
            DescribeTransactionsRequest(transactional_ids=["two"]), 0, DescribeTransactionsResponse
        )
        (state,) = described.transaction_states
        records = batch(
            [b"between"],
            attributes=TRANSACTIONAL,
            producer_id=state.producer_id,
            producer_epoch=state.producer_epoch,
            base_sequence=1,
        )
        request = produce_request(TOPIC, records)
        request.transactional_id = "two"
        answer = connection.call(request, NAMES_UP_TO - 1, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_the_java_producer_aborts_until_it_has_a_new_epoch_and_loses_nothing(
    kafka: ApacheKafka, tmp_path: Path
) -> None:
    with Cluster() as quire:
        address = quire.bootstrap_servers
        # With transaction protocol 2 every transaction has an epoch of its own, and begins with number 0.
        kafka.tool("FeatureCommand", "--bootstrap-server", address, "downgrade", "--feature", "transaction.version=1")
        create(Server(kafka, address, tmp_path), TOPIC)
        with kafka.program(tmp_path, str(PROGRAM), address, TOPIC, str(tmp_path)):
            wait_until((tmp_path / "written").exists, "the first record is written")
            write_in_its_name(address)
            (tmp_path / "commit").touch()
            wait_until((tmp_path / "refusals").exists, "the second transaction is committed")
        assert (tmp_path / "refusals").read_text().split() == ["UnknownProducerIdException", "KafkaException"]
        assert [value for _, value in committed(address, TOPIC)] == ["first", "between", "second"]
