"""Runs Apache Kafka for tests/wire, with the settings that those tests give to Quire, until it is interrupted.

`python -m interop.wire_broker` prints the address to put into QUIRE_WIRE_BOOTSTRAP.
"""

import signal
import sys
import tempfile
from pathlib import Path

from interop.apache_kafka import ApacheKafka, jars, settings
from tests.wire.broker_settings import SETTINGS

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def main() -> None:
    kafka = ApacheKafka(jars())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="wire-broker-") as name:
        folder = Path(name)
        properties = settings(folder / "data") | {key: str(value) for key, value in SETTINGS.items()}
        kafka.format(properties, folder, CLUSTER_ID)
        with kafka.server(properties, folder) as address:
            print(address, flush=True)
            signal.pause()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
