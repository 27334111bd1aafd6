"""Clients that create topics, settings, partitions and producer ids through any node, while nodes fail.

Each request goes from node to node until it is acknowledged. A request whose answer was lost may have been carried out,
so the next attempt may find its work done. Every topic, setting and partition count is asked for once, so that a late
attempt cannot undo a later request.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from quire.protocol.errors import ErrorCode
from quire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from quire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from quire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from quire.protocol.schema import Message
from quire.testing import WireConnection

TOPIC_RESOURCE = 2
SETTING = "retention.ms"
ANSWER_S = 3.0
REQUEST_MS = 2000
BACKOFF_S = 0.02
AVOIDED_S = 10.0
MORE_S = 120.0
TRY_AGAIN = {
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.INVALID_REPLICATION_FACTOR,
}
"""INVALID_REPLICATION_FACTOR means that no broker is unfenced."""


class Attempt(NamedTuple):
    """A request, and the errors which show that an earlier attempt of it was carried out."""

    request: Message
    version: int
    response_class: type[Message]
    error_of: Callable[[Message], int]
    done: frozenset[ErrorCode] = frozenset()


@dataclass(slots=True)
class Acknowledged:
    """The changes that clients got an acknowledgement for."""

    partitions: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    producer_ids: list[int] = field(default_factory=list)
    requests: int = 0


class AdminLoad:
    """Two clients that send requests until `finish`."""

    def __init__(self, addresses: Mapping[int, str], clients: int = 2) -> None:
        self._addresses = list(addresses.values())
        self._changed = threading.Condition()
        self._stopping = False
        self.acknowledged = Acknowledged()
        self.attempted: set[str] = set()
        self.failures: list[str] = []
        self._askers = [Asker(self._addresses, number) for number in range(clients)]
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def wait_for_more(self, count: int) -> None:
        """Waits until `count` more requests are acknowledged."""
        with self._changed:
            wanted = self.acknowledged.requests + count
            enough = self._changed.wait_for(lambda: self.acknowledged.requests >= wanted or self.failures, MORE_S)
            assert not self.failures, self.failures
            assert enough, f"{self.acknowledged.requests} requests were acknowledged, and not {wanted}"

    def wait_for_refusals(self, count: int) -> None:
        """Waits until `count` more requests were refused by a node or not answered in time."""
        deadline = time.monotonic() + MORE_S
        wanted = sum(asker.refusals for asker in self._askers) + count
        while sum(asker.refusals for asker in self._askers) < wanted:
            assert time.monotonic() < deadline, "the requests are neither acknowledged nor refused"
            time.sleep(BACKOFF_S)

    def finish(self) -> Acknowledged:
        self._stopping = True
        for thread in self._threads:
            thread.join(MORE_S)
            assert not thread.is_alive(), "a request is not acknowledged"
        assert not self.failures, self.failures
        return self.acknowledged

    def _run(self, client: int) -> None:
        asker = self._askers[client]
        number = 0
        try:
            while not self._stopping:
                self._ask_for_a_topic(asker, f"t-{client}-{number:04d}", number)
                number += 1
        except Exception as error:
            with self._changed:
                self.failures.append(f"client {client}: {error!r}")
                self._changed.notify_all()
        finally:
            asker.close()

    def _ask_for_a_topic(self, asker: "Asker", name: str, number: int) -> None:
        self.attempted.add(name)
        count = 1 + number % 3
        asker.until_acknowledged(create_topic(name, count))
        self._note(lambda acknowledged: acknowledged.partitions.update({name: count}))
        value = str(100_000 + number)
        asker.until_acknowledged(set_retention(name, value))
        self._note(lambda acknowledged: acknowledged.settings.update({name: value}))
        asker.until_acknowledged(add_partitions(name, count + 1))
        self._note(lambda acknowledged: acknowledged.partitions.update({name: count + 1}))
        response = asker.until_acknowledged(NEW_PRODUCER_ID)
        assert isinstance(response, InitProducerIdResponse)
        self._note(lambda acknowledged: acknowledged.producer_ids.append(response.producer_id))

    def _note(self, change: Callable[[Acknowledged], None]) -> None:
        with self._changed:
            change(self.acknowledged)
            self.acknowledged.requests += 1
            self._changed.notify_all()


class Asker:
    """One client, with a connection to one node after another. It avoids one that did not answer for a while."""

    def __init__(self, addresses: list[str], first: int) -> None:
        self._addresses = addresses
        self._next = first
        self._silent: dict[str, float] = {}
        """When each node that did not answer may get a request again."""
        self._connection: WireConnection | None = None
        self.refusals = 0
        """Requests that a node refused, or did not answer in time."""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def until_acknowledged(self, attempt: Attempt) -> Message:
        while True:
            response = self._answer(attempt)
            if response is not None:
                error = ErrorCode(attempt.error_of(response))
                if error == ErrorCode.NONE or error in attempt.done:
                    self.move_on()
                    return response
                assert error in TRY_AGAIN, f"{attempt.request} was refused with {error!r}"
                self.refusals += 1
            self.move_on()
            time.sleep(BACKOFF_S)

    def move_on(self) -> None:
        """The next request goes to another node."""
        self.close()
        self._next += 1

    def _answer(self, attempt: Attempt) -> Message | None:
        address = self._addresses[self._next % len(self._addresses)]
        if time.monotonic() < self._silent.get(address, 0.0):
            return None
        try:
            self._connection = WireConnection(address, timeout_s=ANSWER_S)
            return self._connection.call(attempt.request, attempt.version, attempt.response_class)
        except TimeoutError:
            self.refusals += 1
            self._silent[address] = time.monotonic() + AVOIDED_S
            return None
        except OSError:
            return None


def _first(response: Message) -> int:
    """The error code of the single result."""
    match response:
        case CreateTopicsResponse():
            return response.topics[0].error_code
        case CreatePartitionsResponse():
            return response.results[0].error_code
        case IncrementalAlterConfigsResponse():
            return response.responses[0].error_code
        case InitProducerIdResponse():
            return response.error_code
    raise AssertionError(response)


def create_topic(name: str, partitions: int) -> Attempt:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_MS)
    return Attempt(request, 7, CreateTopicsResponse, _first, frozenset({ErrorCode.TOPIC_ALREADY_EXISTS}))


def set_retention(topic: str, value: str) -> Attempt:
    config = AlterableConfig(name=SETTING, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    return Attempt(request, 1, IncrementalAlterConfigsResponse, _first)


def add_partitions(topic: str, count: int) -> Attempt:
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=REQUEST_MS)
    return Attempt(request, 3, CreatePartitionsResponse, _first, frozenset({ErrorCode.INVALID_PARTITIONS}))


NEW_PRODUCER_ID = Attempt(
    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4, InitProducerIdResponse, _first
)
