"""From the `kafka.*` options to a client. Clients are made where they are used and never pickled."""

from pyspark_quire.options import CLIENT_ID, REQUEST_TIMEOUT_MS, SERVERS, Options
from quire.client.shell_blocking import BlockingClient


def connect(options: Options) -> BlockingClient:
    """A client of the cluster that the options name; nothing is sent before it is asked for something."""
    return BlockingClient(
        options.required(SERVERS), client_id=options[CLIENT_ID], request_timeout_ms=options[REQUEST_TIMEOUT_MS]
    )
