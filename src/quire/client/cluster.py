"""A cluster as a client sees it: the brokers, one link to each broker in use, and requests.

`call(ANY, ...)` goes to a reachable broker, and tries every known address once before it fails; a call to a node id
goes to that node or fails. Nothing is retried here: the caller decides what a failure means.
"""

from collections.abc import Iterable
from typing import TypeVar, cast

from quire.address import Address
from quire.client.connection import Versions
from quire.client.errors import UnreachableError
from quire.client.link import CallResult, Link
from quire.client.metadata import Metadata
from quire.pending import Pending
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from quire.protocol.schema import Message
from quire.seams import Clock, Connector, Random
from quire.steps import Steps, perform, wait

ANY = -1
REQUEST_TIMEOUT_MS = 30_000.0

R = TypeVar("R")


class Cluster:
    def __init__(
        self,
        servers: list[Address],
        *,
        clock: Clock,
        random: Random,
        network: Connector,
        client_id: str = "quire",
        request_timeout_ms: float = REQUEST_TIMEOUT_MS,
    ) -> None:
        self.clock = clock
        self.random = random
        self.metadata = Metadata()
        self.request_timeout_ms = request_timeout_ms
        self._servers = servers
        self._client_id = client_id
        self._network = network
        self._links: dict[Address, Link] = {}
        self._features: dict[str, int] = {}
        self._features_epoch = -1

    def call(
        self,
        node: int,
        request: Message,
        *,
        timeout_ms: float | None = None,
        answered: bool = True,
        versions: Versions | None = None,
    ) -> Pending[CallResult]:
        """Sends a request to a node, or to ANY; the result is the response or a ClientError.

        `versions` limits the versions to those that can express the request; the default is all versions.
        """
        if timeout_ms is None:
            timeout_ms = self.request_timeout_ms
        if node == ANY:
            return perform(self._call_any(request, timeout_ms, versions))
        broker = self.metadata.brokers.get(node)
        if broker is None:
            unknown: Pending[CallResult] = Pending()
            unknown.complete(UnreachableError(f"node {node} is not part of the cluster now"))
            return unknown
        return self.link(broker.address).call(request, timeout_ms, answered=answered, versions=versions)

    def ask(
        self,
        node: int,
        request: Message,
        response: type[R],
        *,
        timeout_ms: float | None = None,
        versions: Versions | None = None,
    ) -> Steps[R]:
        """The same inside an operation: waits for the response, or raises the failure."""
        answer = yield from wait(self.call(node, request, timeout_ms=timeout_ms, versions=versions))
        assert isinstance(answer, response)
        return answer

    def refresh(self, topics: Iterable[str] | None, *, create: bool = False) -> Steps[None]:
        """Refreshes the metadata of these topics (None: all of them); `create` allows the broker to create them."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        response = yield from self.ask(ANY, request, MetadataResponse)
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code), "the broker could not describe the cluster")
        if topics is None:
            self.metadata.forget_topics()
        self.metadata.apply(response)

    def feature_level(self, name: str) -> int:
        """The finalized level of a feature, from the newest ApiVersions response of any broker; 0: off."""
        for link in self._links.values():
            heard = None if link.session is None else link.session.connection.features
            if heard is not None and heard.finalized_features_epoch > self._features_epoch:
                self._features_epoch = heard.finalized_features_epoch
                self._features = {each.name: each.max_version_level for each in heard.finalized_features}
        return self._features.get(name, 0)

    def link(self, address: Address) -> Link:
        link = self._links.get(address)
        if link is None:
            link = Link(address, self._client_id, self.clock, self._network, self.random)
            self._links[address] = link
        return link

    def beside(self) -> "Cluster":
        """The same cluster with separate connections, on which no request waits behind a long-polling fetch."""
        other = Cluster(
            self._servers,
            clock=self.clock,
            random=self.random,
            network=self._network,
            client_id=self._client_id,
            request_timeout_ms=self.request_timeout_ms,
        )
        other.metadata = self.metadata
        return other

    def close(self) -> None:
        for link in self._links.values():
            link.close()

    def _call_any(self, request: Message, timeout_ms: float, versions: Versions | None) -> Steps[CallResult]:
        failure: UnreachableError | None = None
        candidates = self._candidates()
        for link in candidates:
            try:
                return cast(CallResult, (yield from wait(link.call(request, timeout_ms, versions=versions))))
            except UnreachableError as error:
                failure = error
        if len(candidates) == 1 and failure is not None:
            raise failure
        names = ", ".join(str(link.address) for link in candidates)
        raise UnreachableError(f"none of {names} is reachable; the last one said: {failure}")

    def _candidates(self) -> list[Link]:
        """Every known address, the best first: connected ones by load, untried ones, then those that have failed."""
        known = [broker.address for broker in self.metadata.brokers.values()]
        addresses = list(dict.fromkeys([*known, *self._servers]))
        start = self.random.below(len(addresses))
        links = [self.link(address) for address in addresses[start:] + addresses[:start]]
        return sorted(links, key=lambda link: (not link.ready, link.resting, link.load))
