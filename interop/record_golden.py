"""Records small data directories of Apache Kafka into tests/golden, for tests that need no Java.

    python -m interop.record_golden [SCENARIO ...]

For each scenario of `interop.scenarios` a folder `tests/golden/kafka-<version>/<name>` is replaced:

    data/            the data directory that Apache Kafka left, without its lock file
    sizes.json       the true size of files that end in zeros: these are cut off here, and restored by the tests. A
                     running broker gives each index its full 10 MB in advance, and one that is killed leaves them.
    expected.json    what Apache Kafka served from it: offsets, records, and which of them are committed
    coordinated.json the state of its coordinators, if the scenario has groups or transactions
    dumped.txt       the output of Apache Kafka's DumpLogSegments for every file, one fact per line
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from interop.apache_kafka import VERSION, ApacheKafka, jars, settings
from interop.dump_log_segments import dump_directory
from interop.librdkafka import read_everything
from interop.scenarios import SCENARIOS, Scenario, Server
from tests.golden.coordinated import coordinated
from tests.golden.served import Partitions, everything

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / f"kafka-{VERSION}"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
QUIET = {"metadata.max.idle.interval.ms": "0", "log.segment.delete.delay.ms": "600000"}
"""Settings without idle records in the metadata log, and without files that vanish while they are copied."""


def record(kafka: ApacheKafka, scenario: Scenario, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        data_dir = Path(temporary) / "data"
        properties = settings(data_dir) | QUIET | dict(scenario.settings)
        kafka.format(properties, Path(temporary), CLUSTER_ID)
        with kafka.server(properties, Path(temporary), killed=scenario.killed) as address:
            kept = scenario.fill(Server(kafka, address, data_dir))
            first = settled(address)
            assert read_everything(address, first) == first, "librdkafka reads something else"
            # Once more, because librdkafka's requests have created __consumer_offsets.
            served = everything(address)
            known = coordinated(address) if kept else None
        del kept
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "expected.json").write_text(_json(served))
        if known is not None:
            (folder / "coordinated.json").write_text(_json(known))
        (folder / "dumped.txt").write_text(dump_directory(kafka, data_dir))
        sizes = copy_without_zeros(data_dir, folder / "data")
        (folder / "sizes.json").write_text(_json(sizes))


def settled(address: str) -> Partitions:
    """Reads everything until nothing more arrives: the markers of a transaction are written after the response to
    EndTxn."""
    seen = everything(address)
    for _ in range(20):
        before, seen = seen, everything(address)
        if seen == before:
            break
    return seen


def copy_without_zeros(source: Path, target: Path) -> dict[str, int]:
    """Copies all files but the lock; returns the true sizes of files whose trailing zeros were cut off."""
    sizes = {}
    for path in sorted(path for path in source.rglob("*") if path.is_file() and path.name != ".lock"):
        content = path.read_bytes()
        kept = content.rstrip(b"\0") if path.suffix in {".index", ".timeindex"} else content
        if len(kept) != len(content):
            sizes[str(path.relative_to(source))] = len(content)
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(kept)
    return sizes


def _json(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def main() -> None:
    kafka = ApacheKafka(jars())
    for scenario in SCENARIOS:
        if scenario.name in sys.argv[1:] or not sys.argv[1:]:
            record(kafka, scenario, GOLDEN / scenario.name)
            print(f"recorded {GOLDEN / scenario.name}", flush=True)


if __name__ == "__main__":
    main()
