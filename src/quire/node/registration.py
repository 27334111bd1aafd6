"""The requests with which a node registers at the active controller, as a broker and as a controller."""

from collections.abc import Mapping

from quire.config.broker_config import BrokerConfig
from quire.config.listeners import SECURITY_PROTOCOLS
from quire.config.listeners import Listener as ConfiguredListener
from quire.metadata.features import SUPPORTED
from quire.protocol.messages import broker_registration as broker
from quire.protocol.messages import controller_registration as controller
from quire.raft.replicas import Endpoint

Ports = Mapping[str, int]
"""The bound port of each listener. It is advertised if the listener is configured with port 0."""


def as_broker(
    config: BrokerConfig,
    cluster_id: str,
    incarnation_id: bytes,
    ports: Ports,
    directory_ids: list[bytes],
    previous_epoch: int,
) -> broker.BrokerRegistrationRequest:
    """`previous_epoch` is the broker epoch before the last clean stop, or -1 after a crash."""
    return broker.BrokerRegistrationRequest(
        broker_id=config.node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            broker.Listener(
                name=listener.name,
                host=listener.host,
                port=listener.port or ports[listener.name],
                security_protocol=protocol_number(listener),
            )
            for listener in config.topology.advertised_listeners
        ],
        features=[
            broker.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(SUPPORTED.items())
        ],
        rack=config.get_str("broker.rack") if config.get("broker.rack") else None,
        log_dirs=directory_ids,
        previous_broker_epoch=previous_epoch,
    )


def as_controller(
    config: BrokerConfig, incarnation_id: bytes, ports: Ports
) -> controller.ControllerRegistrationRequest:
    return controller.ControllerRegistrationRequest(
        controller_id=config.node_id,
        incarnation_id=incarnation_id,
        listeners=[
            controller.Listener(
                name=listener.name,
                host=listener.host,
                port=listener.port or ports[listener.name],
                security_protocol=protocol_number(listener),
            )
            for listener in config.topology.advertised_controller_listeners
        ],
        features=[
            controller.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(SUPPORTED.items())
        ],
    )


def controller_endpoints(config: BrokerConfig, ports: Ports) -> tuple[Endpoint, ...]:
    """Where other controllers and brokers reach this controller."""
    return tuple(
        Endpoint(listener.name, listener.host, listener.port or ports[listener.name])
        for listener in config.topology.advertised_controller_listeners
    )


def protocol_number(listener: ConfiguredListener) -> int:
    return SECURITY_PROTOCOLS.index(listener.security_protocol)
