"""A data directory that Apache Kafka formatted and filled, opened by Quire, and by Apache Kafka again.

The recorded directories in tests/golden are made the same way, and tested without Java.
"""

from pathlib import Path

import pytest

from interop.apache_kafka import ApacheKafka, settings
from interop.librdkafka import read_everything
from interop.record_golden import settled
from interop.scenarios import SCENARIOS, Scenario, Server
from quire.testing import Cluster
from tests.golden.coordinated import coordinated, when_replayed
from tests.golden.served import everything
from tests.wire.clients import eventually

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_quire_serves_what_kafka_stored(kafka: ApacheKafka, tmp_path: Path, scenario: Scenario) -> None:
    data_dir = tmp_path / "data"
    properties = settings(data_dir) | dict(scenario.settings)
    kafka.format(properties, tmp_path, CLUSTER_ID)
    with kafka.server(properties, tmp_path, killed=scenario.killed) as address:
        kept = scenario.fill(Server(kafka, address, data_dir))
        expected = settled(address)
        known = coordinated(address)
    del kept
    with Cluster(data_dir=data_dir) as quire:
        eventually(lambda: when_replayed(quire.bootstrap_servers) == known)
        assert everything(quire.bootstrap_servers) == expected
        assert read_everything(quire.bootstrap_servers, expected) == expected
    with kafka.server(properties, tmp_path) as address:
        eventually(lambda: when_replayed(address) == known)
        served_again = everything(address)
        assert {name: served_again[name] for name in expected} == expected
