"""An inventory whose processor and node are killed with -9 again and again: every command is executed once."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

from quire.client.errors import ClientError
from quire.client.group_offsets import fetch_offsets
from quire.client.offsets import TopicPartition
from quire.client.shell_blocking import BlockingClient
from quire.protocol.errors import ApiError
from quire.testing import Cluster
from quire_samples.inventory.processor import ProcessorConfig
from quire_samples.inventory.topics import ensure_topics
from tests.samples.inventory.running import (
    ProcessorProcess,
    assert_every_command_was_carried_out_once,
    made_commands,
    own_config,
    send,
)
from tests.wire.clients import eventually

COMMANDS_A_KILL = 4_000


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


class Supervisor:
    """Keeps one processor running."""

    def __init__(self, servers: str, config: ProcessorConfig) -> None:
        self._start = partial(ProcessorProcess, servers, config)
        self._processor = self._start()
        self._topic_partition = TopicPartition(config.topics.commands, 0)
        self._name = config.name

    def kill(self) -> None:
        self._processor.kill()
        self._processor = self._start()

    def has_done(self, client: BlockingClient, count: int) -> bool:
        if self._processor.has_ended:
            self._processor = self._start()
        with suppress(ApiError, ClientError):  # the node may still be starting
            committed = client.run(
                fetch_offsets(client.cluster, self._name, [self._topic_partition], require_stable=False)
            )
            return self._topic_partition in committed and committed[self._topic_partition].offset >= count
        return False

    def stop(self) -> tuple[int, str, str]:
        return self._processor.stop()


def carry_out_with_kills(cluster: Cluster, kills: int) -> None:
    """Half of the kills hit the processor, the other half the node, at moments that depend on its speed."""
    config = own_config(commands_at_once=100)
    with BlockingClient(cluster.bootstrap_servers) as client:
        client.run(ensure_topics(client.cluster, config.topics))
        total = COMMANDS_A_KILL * kills
        send(client, config.topics, made_commands(total))
        supervisor = Supervisor(cluster.bootstrap_servers, config)
        for number in range(kills):
            eventually(partial(supervisor.has_done, client, total * number // kills + 1))
            if number % 2:
                cluster.kill()
                cluster.restart()
            else:
                supervisor.kill()
        eventually(partial(supervisor.has_done, client, total))
        code, _, said = supervisor.stop()
        assert (code, said) == (0, "")
        assert_every_command_was_carried_out_once(client, config.topics)
    assert "Traceback" not in cluster.log()


def test_every_command_is_carried_out_once(cluster: Cluster) -> None:
    carry_out_with_kills(cluster, 3)


@pytest.mark.soak
def test_every_command_is_carried_out_once_through_many_kills(cluster: Cluster) -> None:
    carry_out_with_kills(cluster, 20)
