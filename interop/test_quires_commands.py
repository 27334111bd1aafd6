"""Quire's own commands on Apache Kafka: the tests of the command line that hold for any broker."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.apache_kafka import ApacheKafka, settings

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def servers(kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kafka")
    chosen = settings(folder / "data") | {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
    }
    kafka.format(chosen, folder, "4L6g3nShT-eMCtK--X86sw")
    with kafka.server(chosen, folder) as address:
        yield address


@pytest.mark.parametrize(
    "file", ["groups/test_groups.py", "transactions/test_transactions.py", "records/test_consume_group.py"]
)
def test_commands(servers: str, file: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"tests/cli/{file}"],
        cwd=ROOT,
        env={**os.environ, "QUIRE_WIRE_BOOTSTRAP": servers},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
