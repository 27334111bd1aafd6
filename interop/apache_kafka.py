"""Apache Kafka from Maven: the jars, its command line tools, and a server on a given data directory.

`jars()` fetches once into `.interop/` in the project. The benchmarks use it too.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from interop.maven import fetch
from quire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from quire.testing import WireConnection
from tests.free_ports import free_ports

VERSION = "4.3.1"
TOOL_TIMEOUT_S = 120
START_TIMEOUT_S = 90
LOG = "kafka.log"
_ARTIFACTS = {
    "org.apache.kafka:kafka_2.13": VERSION,
    "org.apache.kafka:kafka-tools": VERSION,
    "org.apache.kafka:kafka-streams": VERSION,
    "org.apache.kafka:connect-runtime": VERSION,
    "org.apache.kafka:connect-file": VERSION,
    "org.slf4j:slf4j-simple": "1.7.36",
}


class ToolError(AssertionError):
    """A tool of Apache Kafka failed; the message has its output."""


def jars() -> Path:
    """The folder of jars, fetched if it does not exist."""
    return fetch(f"kafka-{VERSION}", f"Apache Kafka {VERSION}", _ARTIFACTS)


class ApacheKafka:
    """One installation."""

    def __init__(self, lib: Path) -> None:
        self._lib = lib

    def tool(self, name: str, *arguments: str, text: str = "", fails: bool = False) -> str:
        """Runs a tool by its class, `tool("TopicCommand", "--list", ...)`; returns its output."""
        full_name = name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}"
        command = [*self._java("-Xmx256m"), full_name, *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
        if (done.returncode != 0) != fails:
            raise ToolError(
                f"{' '.join([name, *arguments])} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
            )
        return done.stdout

    @contextlib.contextmanager
    def program(self, folder: Path, *arguments: str, killed: bool = False) -> Iterator[subprocess.Popen[bytes]]:
        """Runs a Java program, a class or a source file, in its own folder; it ends with the block."""
        log_path = folder / "program.log"
        with log_path.open("ab") as log:
            process = subprocess.Popen([*self._java("-Xmx256m"), *arguments], stdout=log, stderr=log, cwd=folder)
        try:
            yield process
        except BaseException:
            print(f"--- the end of the program's log ---\n{log_path.read_text(errors='replace')[-8000:]}")
            raise
        finally:
            _end(process, killed=killed)

    @contextlib.contextmanager
    def server(self, properties: Mapping[str, str], folder: Path, *, killed: bool = False) -> Iterator[str]:
        """Runs a broker with these settings; its first listener's address when it answers, stopped at the end.

        With `killed` it is killed at the end instead.
        """
        process = self.start(properties, folder)
        try:
            self.wait_until_it_serves(process, properties, folder)
            yield _address(properties)
        except BaseException:
            log = (folder / LOG).read_text(errors="replace")
            print(f"--- the end of Apache Kafka's log ---\n{log[-8000:]}")
            raise
        finally:
            _end(process, killed=killed)

    def start(self, properties: Mapping[str, str], folder: Path) -> subprocess.Popen[bytes]:
        """Starts a broker; the caller must end it."""
        path = folder / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        with (folder / LOG).open("ab") as log:
            return subprocess.Popen(
                [*self._java("-Xmx512m"), "kafka.Kafka", str(path)], stdout=log, stderr=log, cwd=folder
            )

    def server_command(self, properties_path: Path) -> list[str]:
        """The command that runs a node of a cluster, with a small heap."""
        return [*self._java("-Xmx256m"), "kafka.Kafka", str(properties_path)]

    def wait_until_it_serves(
        self, process: subprocess.Popen[bytes], properties: Mapping[str, str], folder: Path
    ) -> None:
        _wait_until_it_serves(process, _address(properties), folder / LOG)

    def format(self, properties: Mapping[str, str], folder: Path, cluster_id: str, *, alone: bool = True) -> None:
        """Formats the directories in the settings for a new cluster, of one node or of the given ones."""
        path = folder / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        options = ["--standalone"] if alone else []
        self.tool("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(path), *options)

    def _java(self, *options: str) -> list[str]:
        logs = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *options, "-XX:+UseSerialGC", logs, "-cp", f"{self._lib}/*"]


def _address(properties: Mapping[str, str]) -> str:
    return properties["listeners"].split(",")[0].partition("://")[2]


def _end(process: subprocess.Popen[bytes], *, killed: bool) -> None:
    process.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_until_it_serves(process: subprocess.Popen[bytes], address: str, log_path: Path) -> None:
    """A broker that accepts connections is not ready yet: its metadata must list it as a broker."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"Apache Kafka ended with {process.returncode}, see above; log at {log_path}")
        with contextlib.suppress(OSError), WireConnection(address, timeout_s=5) as connection:
            if connection.call(MetadataRequest(topics=[]), 12, MetadataResponse).brokers:
                return
        time.sleep(0.1)
    raise AssertionError(f"Apache Kafka did not serve within {START_TIMEOUT_S} s")


def settings(data_dir: Path, *, node_id: int = 1) -> dict[str, str]:
    """A server.properties for one Apache Kafka, broker and controller, on this directory."""
    port, controller_port = free_ports(2)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "log.dirs": str(data_dir),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
    }
