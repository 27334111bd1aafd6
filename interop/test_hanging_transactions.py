"""`quire transactions find-hanging` and `abort` on a hanging transaction, which can be created on Apache Kafka.

Quire refuses records of a transaction that its coordinator does not know.
"""

from collections.abc import Iterator

import pytest

from interop.apache_kafka import ApacheKafka, settings
from quire.protocol.messages.produce import ProduceResponse
from quire.testing import WireConnection
from tests.cli.command import quire
from tests.cli.transactions.test_transactions import begun, created, read_committed, shown
from tests.wire.batches import batch
from tests.wire.raw import NAMES_UP_TO, produce_request

TRANSACTIONAL = 1 << 4


@pytest.fixture(scope="module")
def servers(kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kafka")
    # Without this check a partition takes records of a transaction that no coordinator knows, as it did before KIP-890.
    chosen = settings(folder / "data") | {"transaction.partition.verification.enable": "false"}
    kafka.format(chosen, folder, "4L6g3nShT-eMCtK--X86sw")
    with kafka.server(chosen, folder) as address:
        yield address


def hang(servers: str, topic: str, producer_id: int) -> None:
    """A record of a transaction that no coordinator knows, and which will therefore never end."""
    records = batch([b"lost"], attributes=TRANSACTIONAL, producer_id=producer_id, producer_epoch=0, base_sequence=0)
    request = produce_request(topic, records)
    request.transactional_id = "nobody"
    with WireConnection(servers) as connection:
        answer = connection.call(request, NAMES_UP_TO - 1, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_a_transaction_that_hangs_is_found_and_aborted(servers: str) -> None:
    topic = created(servers, "hangs")
    quire("produce", topic, servers=servers, stdin=b"before\n")
    hang(servers, topic, producer_id=987_654)
    quire("produce", topic, servers=servers, stdin=b"after\n")
    under_way = begun(servers, "not-hanging", topic, 0)
    assert read_committed(servers, topic) == ["before"]
    (found,) = shown(servers, "find-hanging", topic, "--older-than", "0")
    assert (found["producer_id"], found["start_offset"]) == (987_654, 1)
    assert shown(servers, "find-hanging", "--older-than", "0") == [found]

    abort = ("transactions", "abort", topic, "--partition", "0", "--start-offset")
    elsewhere = quire(*abort, "0", servers=servers)
    assert elsewhere.returncode == 4 and "there are open transactions at 1, 3" in elsewhere.stderr.decode()
    aborted = quire(*abort, "1", servers=servers)
    assert (aborted.returncode, aborted.stdout.decode()) == (
        0,
        f"{topic}-0: aborted the transaction of producer 987654 at 1\n",
    )
    under_way.commit_transaction(30)
    assert read_committed(servers, topic) == ["before", "after", "open"]
    assert quire(*abort, "1", servers=servers).returncode == 4
