"""Brokers: who is registered, and how to remove a registration."""

from quire.client.admin.results import ask_controller, error
from quire.client.cluster import Cluster
from quire.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from quire.steps import Steps


def unregister_broker(cluster: Cluster, broker_id: int) -> Steps[None]:
    """Removes a broker that will not return; one that runs registers again when it restarts."""
    response = yield from ask_controller(
        cluster,
        UnregisterBrokerRequest(broker_id=broker_id),
        UnregisterBrokerResponse,
        lambda answer: [answer.error_code],
    )
    failed = error(response.error_code, response.error_message, f"broker {broker_id} was not unregistered")
    if failed is not None:
        raise failed
