"""The plugin's fixtures in a separate pytest run, as for a user."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

PATIENCE_S = 120
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
        quire_cluster.delay("Metadata", 60_000, required=False)

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


def run_pytest(folder: Path, **files: str) -> str:
    for name, text in (files or {"test_user": TESTS}).items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(folder)]
    # With CI set, pytest repeats every message in full in its summary.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return done.stdout + done.stderr


def test_fixtures_serve_and_a_failed_test_shows_the_log(tmp_path: Path) -> None:
    output = run_pytest(tmp_path)
    assert "1 failed, 3 passed" in output, output
    section = output.partition("log of Cluster(127.0.0.1:")[2]
    assert "during this test" in section
    assert section.partition("\n")[2].strip().splitlines()[0].strip(), "the node logged the broken client"


def test_loading_the_plugin_loads_nothing_else() -> None:
    code = "import sys, quire.testing.pytest_plugin; print([m for m in sys.modules if m.startswith('quire')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stdout.strip() == "['quire', 'quire.testing', 'quire.testing.pytest_plugin']"


NODE_ID_TEST = """
    import pytest
    from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
    from quire.testing import WireConnection

    def node_id(cluster):
        with WireConnection(cluster.bootstrap_servers) as connection:
            return connection.call(MetadataRequest(topics=[]), 12, MetadataResponse).brokers[0].node_id

    def test_before_the_override(quire_cluster):
        assert node_id(quire_cluster) == EXPECTED
"""
OVERRIDE = """
    @pytest.fixture(scope="SCOPE")
    def quire_config():
        return {"node.id": EXPECTED}

    def test_shared(quire_cluster):
        assert node_id(quire_cluster) == EXPECTED

    def test_fresh(fresh_quire_cluster):
        assert node_id(fresh_quire_cluster) == EXPECTED
"""
OVERRIDE_IN_CLASS = """
    class TestOwn:
        @pytest.fixture(scope="class")
        def quire_config(self):
            return {"node.id": 9}

        def test_own(self, quire_cluster):
            assert node_id(quire_cluster) == 9
"""


def test_modules_classes_and_folders_have_settings_of_their_own(tmp_path: Path) -> None:
    conftest = """
        import pytest

        @pytest.fixture(scope="session")
        def quire_config():
            return {"node.id": 8}
    """
    overriding = textwrap.dedent(NODE_ID_TEST) + textwrap.dedent(OVERRIDE)
    output = run_pytest(
        tmp_path,
        test_a_default=NODE_ID_TEST.replace("EXPECTED", "1"),
        test_b_module=overriding.replace("SCOPE", "module").replace("EXPECTED", "5"),
        test_c_session=overriding.replace("SCOPE", "session").replace("EXPECTED", "6"),
        test_d_function=overriding.replace("SCOPE", "function").replace("EXPECTED", "7"),
        test_e_class=textwrap.dedent(NODE_ID_TEST).replace("EXPECTED", "1") + textwrap.dedent(OVERRIDE_IN_CLASS),
        folder__conftest=conftest,
        folder__test_f_folder=NODE_ID_TEST.replace("EXPECTED", "8"),
        test_g_default_again=NODE_ID_TEST.replace("EXPECTED", "1"),
    )
    assert "14 passed" in output and "failed" not in output and "error" not in output, output


def test_an_error_in_a_module_is_reported_as_pytest_does(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, test_broken="print('imported')\nraise ZeroDivisionError\n")
    assert output.count("imported") == 1 and "1 error" in output, output


def test_a_fault_that_was_never_used_fails_only_its_own_test(tmp_path: Path) -> None:
    tests = """
        import unittest
        import pytest

        def test_unused(quire_cluster):
            quire_cluster.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER")

        def test_next(quire_cluster):
            quire_cluster.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", required=False)

        def test_unused_by_a_fresh_one(fresh_quire_cluster):
            fresh_quire_cluster.delay("Fetch", 5)

        def test_paused(quire_cluster):
            quire_cluster.pause()

        def test_goes_on(quire_cluster):
            quire_cluster.produce("t", "one")

        def test_failing_for_another_reason(quire_cluster, fresh_quire_cluster):
            quire_cluster.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER")
            fresh_quire_cluster.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER")
            raise KeyError("mine")
    """
    output = run_pytest(tmp_path, test_user=tests)
    assert "3 failed, 3 passed" in output and "error" not in output.lower().replace("keyerror", ""), output
    assert "fail_next('Produce', 'NOT_LEADER_OR_FOLLOWER') was never used: no such request came" in output
    assert output.count("was never used: ") == 2, output


def test_clusters_have_as_many_nodes_as_asked_for(tmp_path: Path) -> None:
    tests = """
        import pytest

        @pytest.fixture(scope="module")
        def quire_nodes():
            return 2

        def test_shared(quire_cluster):
            assert quire_cluster.nodes == [1, 2]

        @pytest.mark.quire_nodes(3)
        def test_fresh(fresh_quire_cluster):
            assert fresh_quire_cluster.nodes == [1, 2, 3]
            fresh_quire_cluster.kill(fresh_quire_cluster.controller)
    """
    output = run_pytest(tmp_path, test_user=tests)
    assert "2 passed" in output and "warning" not in output.lower(), output


def test_a_node_that_a_test_has_killed_serves_the_next_one(tmp_path: Path) -> None:
    tests = """
        import pytest

        @pytest.fixture(scope="session", params=[1, 2])
        def quire_nodes(request):
            return request.param

        def test_kill(quire_cluster):
            quire_cluster.produce("t", "one")
            quire_cluster.kill()

        def test_next(quire_cluster):
            assert [record.value for record in quire_cluster.read_all("t")] == [b"one"]
            quire_cluster.stop(quire_cluster.nodes[-1])

        def test_last(quire_cluster):
            assert list(quire_cluster.pids) == quire_cluster.nodes
    """
    output = run_pytest(tmp_path, test_user=tests)
    assert "6 passed" in output, output


def test_a_marker_without_a_number_is_explained(tmp_path: Path) -> None:
    tests = """
        import pytest

        @pytest.mark.quire_nodes
        def test_bare(fresh_quire_cluster):
            pass

        @pytest.mark.quire_nodes("three")
        def test_text(fresh_quire_cluster):
            pass
    """
    output = run_pytest(tmp_path, test_user=tests)
    assert "needs the number of nodes, as in @pytest.mark.quire_nodes(3)" in output, output
    assert "a number of nodes of at least 1, not 'three'" in output, output
