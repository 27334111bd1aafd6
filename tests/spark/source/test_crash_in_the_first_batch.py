"""A driver killed with -9 in its first micro-batch: started again, it reads what arrived since its first start."""

import os
import subprocess
import sys
import time
from pathlib import Path

from quire.client.group_offsets import fetch_offsets
from quire.client.shell_blocking import BlockingClient
from quire.steps import sleep
from tests.spark.conftest import ROOT, MakeTopic, spark_environment
from tests.spark.filling import append, record

WAIT_S = 300


def start_job(*arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.spark.source.crashing_job", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | spark_environment(), start_new_session=True)


def test_a_stream_from_latest_that_crashed_in_its_first_batch_loses_nothing(
    servers: str, client: BlockingClient, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    append(client, topic, [record(b"before")])
    job = start_job(servers, topic, str(tmp_path), "crash")
    deadline = time.monotonic() + WAIT_S
    while not client.run(fetch_offsets(client.cluster, f"spark-quire-{topic}")):
        assert job.poll() is None, "the job ended before it had started"
        assert time.monotonic() < deadline, "the job does not say where it starts"
        client.run(sleep(client.loop, 200))  # Spark needs the processor more
    append(client, topic, [record(b"first"), record(b"second")])
    assert job.wait(WAIT_S) == -9
    append(client, topic, [record(b"third")])
    assert start_job(servers, topic, str(tmp_path)).wait(WAIT_S) == 0
    assert (tmp_path / "values").read_bytes().split() == [b"first", b"second", b"third"]
