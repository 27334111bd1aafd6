"""The states of a node, from its creation to its end, and which may follow which.

```
CREATED ──▶ CATCHING_UP ──▶ RECOVERING ──▶ REGISTERING ──▶ FENCED ──▶ SERVING
   │             │               │              │             │          │
   └─────────────┴───────────────┴──────────────┴─────────────┴──────────┴──▶ STOPPING ──▶ STOPPED
```

| state | what the node is doing | what ends it |
|---|---|---|
| CREATED | takes its data directories and opens the controller listener | the metadata log is open |
| CATCHING_UP | replays the metadata log; the controller listener answers | the image has all that is committed now |
| RECOVERING | opens its logs in jobs, and flushes what a crash left unflushed | every log is open |
| REGISTERING | opens the broker listeners and registers as a broker | the image has the registration |
| FENCED | partitions and coordinators follow the image; heartbeats say how far | the controller unfences the broker |
| SERVING | the broker listeners answer | a stop |
| STOPPING | leaves the cluster, answers requests in progress, closes everything | all files are closed |

A node that is only a controller has no logs and no broker: CATCHING_UP ──▶ SERVING.

The partitions follow the image only after it has the registration of this run. Before that the image may say that this
node still leads a partition, in an epoch from before a power loss that took the end of its log.
"""

import logging
from enum import Enum

log = logging.getLogger("quire.node")


class NodeState(Enum):
    CREATED = "created"
    CATCHING_UP = "catching up"
    RECOVERING = "recovering"
    REGISTERING = "registering"
    FENCED = "fenced"
    SERVING = "serving"
    STOPPING = "stopping"
    STOPPED = "stopped"


ALLOWED: dict[NodeState, tuple[NodeState, ...]] = {
    NodeState.CREATED: (NodeState.CATCHING_UP, NodeState.STOPPING),
    NodeState.CATCHING_UP: (NodeState.RECOVERING, NodeState.SERVING, NodeState.STOPPING),
    NodeState.RECOVERING: (NodeState.REGISTERING, NodeState.STOPPING),
    NodeState.REGISTERING: (NodeState.FENCED, NodeState.STOPPING),
    NodeState.FENCED: (NodeState.SERVING, NodeState.STOPPING),
    NodeState.SERVING: (NodeState.STOPPING,),
    NodeState.STOPPING: (NodeState.STOPPED,),
    NodeState.STOPPED: (),
}


class NodeProgress:
    """The state that the node is in."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = NodeState.CREATED

    def enter(self, state: NodeState) -> None:
        assert state in ALLOWED[self.state], f"a node that is {self.state.value} cannot be {state.value} next"
        log.debug("node state=%s", state.value)
        self.state = state

    @property
    def is_stopping(self) -> bool:
        return self.state in (NodeState.STOPPING, NodeState.STOPPED)

    @property
    def follows_image(self) -> bool:
        """Whether partitions and coordinators are what the image says."""
        return self.state in (NodeState.FENCED, NodeState.SERVING)
