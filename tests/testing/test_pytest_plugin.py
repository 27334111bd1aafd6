"""The plugin's fixtures in a pytest run of their own, as a user has it."""

import subprocess
import sys
from pathlib import Path

TESTS = """
    import pytest
    from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
    from quire.testing import WireConnection

    NOTHING = MetadataRequest(topics=[])
    seen = []

    @pytest.fixture(scope="session")
    def quire_config():
        return {"node.id": 7}

    @pytest.fixture(scope="session")
    def connection(quire_cluster):
        with WireConnection(quire_cluster.bootstrap_servers) as opened:
            yield opened

    def test_serves(connection, quire_cluster):
        assert connection.call(NOTHING, 12, MetadataResponse).brokers[0].node_id == 7
        seen.append(quire_cluster.bootstrap_servers)
        quire_cluster.delay("Metadata", 60_000)

    def test_is_shared_and_free_of_faults(connection, quire_cluster):
        assert seen == [quire_cluster.bootstrap_servers]
        connection.call(NOTHING, 12, MetadataResponse)

    def test_has_one_of_its_own(fresh_quire_cluster):
        assert fresh_quire_cluster.bootstrap_servers not in seen
        fresh_quire_cluster.kill()

    def test_fails(connection, quire_cluster):
        with WireConnection(quire_cluster.bootstrap_servers) as broken:
            broken.send_bytes(b"\\xff" * 20)
            assert broken.is_closed_by_peer()
        assert False
"""


def run_pytest(folder: Path) -> str:
    lines = TESTS.splitlines()
    folder.joinpath("test_user.py").write_text("\n".join(line.removeprefix("    ") for line in lines))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def test_fixtures_serve_and_a_failed_test_shows_the_log(tmp_path: Path) -> None:
    output = run_pytest(tmp_path)
    assert "1 failed, 3 passed" in output, output
    section = output.partition("log of Cluster(127.0.0.1:")[2]
    assert "during this test" in section
    assert section.partition("\n")[2].strip().splitlines()[0].strip(), "the node logged the broken client"


def test_loading_the_plugin_loads_nothing_else() -> None:
    code = "import sys, quire.testing.pytest_plugin; print([m for m in sys.modules if m.startswith('quire')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "['quire', 'quire.testing', 'quire.testing.pytest_plugin']"
