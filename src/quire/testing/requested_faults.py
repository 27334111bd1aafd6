"""The faults that a test has asked for, and which of them no request has met. Only `Cluster` uses this.

A fault that was never used means that the test did not test what it was written for: a misspelled expectation, a client
that sends another request, code that never ran. `Cluster` and the pytest plugin therefore report it as a failure.
"""

from collections.abc import Iterable, Sequence


class UnusedFaultError(AssertionError):
    """No request met a fault that a test asked for, so the test shows nothing about it."""


class _Fault:
    """One call. `nodes` are those that have the fault now."""

    __slots__ = ("call", "is_certain", "nodes", "required", "uses")

    def __init__(self, call: str, required: bool, nodes: Iterable[int]) -> None:
        self.call = call
        self.required = required
        self.nodes = set(nodes)
        self.uses = 0
        self.is_certain = True
        """Whether all nodes have said how often it was used; one that died has not."""


class RequestedFaults:
    __slots__ = ("_active", "_unused")

    def __init__(self) -> None:
        self._active: list[_Fault] = []
        self._unused: list[str] = []

    def nodes(self) -> set[int]:
        """The nodes that have faults."""
        return {node for fault in self._active for node in fault.nodes}

    def add(self, call: str, nodes: Iterable[int], *, required: bool) -> None:
        self._active.append(_Fault(call, required, nodes))

    def end(self, node: int, uses: Sequence[int] | None) -> None:
        """A node has no faults from now on; until then they affected as many requests as it says, in its order.

        `uses` is None for a node that did not say it.
        """
        there = [fault for fault in self._active if node in fault.nodes]
        for fault, count in zip(there, uses or [0] * len(there), strict=False):
            fault.nodes.discard(node)
            fault.uses += count
            fault.is_certain = fault.is_certain and uses is not None
        over = [fault for fault in self._active if not fault.nodes]
        self._active = [fault for fault in self._active if fault.nodes]
        self._unused += [each.call for each in over if each.required and each.is_certain and not each.uses]

    def take_unused(self) -> list[str]:
        unused, self._unused = self._unused, []
        return unused


def unused_sentence(calls: Sequence[str]) -> str:
    are = "was" if len(calls) == 1 else "were"
    return (
        f"{' and '.join(calls)} {are} never used: no such request came before the faults ended. "
        "Remove the call, or add required=False if the request may stay away."
    )
