"""The two sides: Quire and Apache Kafka, each one process with default settings and its data in a given folder."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from confluent_kafka.admin import AdminClient

from benchmarks.processes import Cpu, cpu, resident_bytes
from tests.free_ports import free_port

QUIRE = Path(sys.executable).parent / "quire"


class Broker(Protocol):
    name: str
    bootstrap: str

    @property
    def pid(self) -> int: ...

    def start(self) -> float:
        """Starts the process and returns the seconds until it answered a client for the first time."""
        ...

    def stop(self) -> None: ...


class ProcessBroker:
    """Shared by both sides: a process, a port, and waiting until it answers."""

    name = ""

    def __init__(self, folder: Path, command: Callable[[int], list[str]]) -> None:
        self.folder = folder
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    def start(self) -> float:
        # A developer's shell may forbid byte code files; every start would then compile all modules again.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with (self.folder / "log.txt").open("ab") as log:
            started = time.perf_counter()
            self._process = subprocess.Popen(
                self._command(self.port), stdout=log, stderr=log, cwd=self.folder, env=environment
            )
        self._wait_until_it_answers()
        return time.perf_counter() - started

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} stopped by itself; see {self.folder / 'log.txt'}")
            if answers(self.port):
                return
            time.sleep(0.002)
        raise TimeoutError(f"{self.name} did not answer within 60 s")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def kill(self) -> None:
        """Ends the process as a crash would; nothing is closed."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def cpu(self) -> Cpu:
        return cpu(self.pid)

    def resident_bytes(self) -> int:
        return resident_bytes(self.pid)


class Quire(ProcessBroker):
    name = "Quire"

    def __init__(self, folder: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        where = ["--data", str(folder / "data")]
        changes = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        super().__init__(folder, lambda port: [str(QUIRE), "start", *where, "--listen", f"127.0.0.1:{port}", *changes])


class ApacheKafka(ProcessBroker):
    name = "Apache Kafka"

    def __init__(self, folder: Path, jars: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        self._jars = f"{jars}/*"
        properties = folder / "server.properties"
        super().__init__(folder, lambda port: ["java", *JVM, "-cp", self._jars, "kafka.Kafka", str(properties)])
        controller_port = free_port()
        properties.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
log.dirs={folder / "data"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
            + "".join(f"{key}={value}\n" for key, value in settings.items())
        )
        tool = ["java", "-cp", self._jars, "kafka.tools.StorageTool"]
        arguments = ["format", "--standalone", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(properties)]
        subprocess.run([*tool, *arguments], check=True, capture_output=True, timeout=60)


JVM = ["-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
"""The options that Kafka's own start script gives the JVM."""


API_VERSIONS_V0 = bytes.fromhex("0000000a0012000000000001ffff")


def answers(port: int) -> bool:
    """Whether the broker answers a request: accepting a connection alone does not count."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.settimeout(1)
            connection.sendall(API_VERSIONS_V0)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


def wait_until_topics_can_be_created(broker: ProcessBroker) -> None:
    """Kafka answers before its broker is unfenced; a created topic has no leader until then."""
    AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=30)
