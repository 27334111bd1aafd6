"""The names and ports of the machines in a simulated cluster. A node on its own is simply called `node`."""

NODE_PORT = 9092
CONTROLLER_PORT = 9093

ALONE = "node"


def node_names(count: int) -> list[str]:
    """In the order of node ids, which begin with 1."""
    return [ALONE] if count == 1 else [f"node-{number}" for number in range(1, count + 1)]
