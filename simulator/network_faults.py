"""The faults of the network: connections break, hosts are cut off from each other, links become slow, hosts lie.

A host that lies refuses connections although it listens.

Partitions have names and heal one by one, so several overlap: one node from all others or from some, one way or both,
two halves, a ring in which messages pass in one direction only.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from simulator.clients.client import Scene
from simulator.fault_counts import Felt
from simulator.network import Conditions, Pair
from simulator.random import SimRandom

Announce = Callable[[str, str], Felt]
"""Called with the kind of a fault and a line about it; returns what to call when it affects something."""

DELAYS_MS = ((5.0, 100.0), (100.0, 1500.0))

Later = Callable[[float, Callable[[], None]], None]


class NetworkFaults:
    def __init__(
        self,
        scene: Scene,
        nodes: Sequence[str],
        clients: Sequence[str],
        random: SimRandom,
        announce: Announce,
        later: Later,
    ) -> None:
        """`nodes` are all machines of the cluster."""
        self._network = scene.network
        self._nodes = nodes
        self._clients = clients
        self._random = random
        self._announce = announce
        self._later = later
        self._healthy = scene.network.conditions
        self._count = 0

    def heal(self) -> None:
        self._network.conditions = self._healthy
        self._network.heal()
        self._network.stop_refusing()
        self._network.stop_delaying()

    @property
    def partitioned(self) -> set[str]:
        """Nodes that some other node cannot reach, or that cannot reach some other one."""
        return {node for pair in permutations(self._nodes, 2) if self._network.is_cut(*pair) for node in pair}

    # --- What can happen

    def break_connections(self, node: str) -> None:
        """Of a node with all hosts, or with one."""
        other = self._random.choice([None, *self._clients, *(each for each in self._nodes if each != node)])
        count = self._network.break_connections(node, other)
        effect = self._announce("broken connections", f"{self._name(node)}{count} connections broke")
        if count:
            effect()

    def cut_off_a_client(self, node: str) -> None:
        client = self._random.choice(self._clients)
        one_way = self._random.chance(0.5)
        ends = (client, node) if self._random.chance(0.5) else (node, client)
        effect = self._announce("cut network", f"cut from {ends[0]} to {ends[1]}" + (", one way" if one_way else ""))
        name = self._network.cut(*ends, one_way=one_way, felt=effect)
        self._later(self._random.between(10.0, 6000.0), lambda: self._network.heal(name))

    def spoil(self) -> None:
        self._network.conditions = Conditions(
            felt=self._announce("bad network", "bad network"),
            slow_chance=self._random.between(0.0, 0.1),
            slow_ms=self._random.between(10.0, 1000.0),
            break_chance=self._random.choice((0.0, 0.002, 0.02)),
            small_segment_chance=self._random.between(0.0, 1.0),
            segment_bytes=self._random.choice((100, 1500, 16384)),
            window_bytes=self._random.choice((2000, 65536)),
        )
        self._later(self._random.between(100.0, 4000.0), self._make_healthy)

    def partition(self, node: str) -> None:
        """Nodes are separated, `node` in particular; clients reach all of them."""
        kind, pairs = self._shape(node)
        name = self._next_name("partition")
        told = ", ".join(f"{source}>{target}" for source, target in pairs)
        self._network.partition(name, pairs, self._announce("partition", f"{name}, {kind}: {told}"))
        self._later(self._random.between(50.0, 8000.0), lambda: self._network.heal(name))

    def isolate(self, node: str) -> None:
        """A node and some clients on its side are separated from all others; it may believe that it leads still."""
        side = [node, *(client for client in self._clients if self._random.chance(0.3))]
        others = [each for each in (*self._nodes, *self._clients) if each not in side]
        name = self._next_name("isolation")
        effect = self._announce("isolation", f"{name}: {', '.join(side)}")
        self._network.partition(name, list(_both_ways(side, others)), effect)
        self._later(self._random.between(200.0, 10_000.0), lambda: self._network.heal(name))

    def slow_down(self, node: str) -> None:
        """Some links between nodes become slow, each as much as it likes, and one way only perhaps.

        If connections are lost meanwhile, new ones overtake what is on its way, and a retried request arrives twice.
        """
        kind, pairs = self._shape(node)
        name = self._next_name("slow links")
        delays_ms = {pair: self._random.between(*self._random.choice(DELAYS_MS)) for pair in pairs}
        told = ", ".join(f"{source}>{target} {ms:.0f} ms" for (source, target), ms in delays_ms.items())
        self._network.delay(name, delays_ms, self._announce("slow links", f"{name}, {kind}: {told}"))
        self._later(self._random.between(50.0, 8000.0), lambda: self._network.stop_delaying(name))
        if self._random.chance(0.5):
            self._later(self._random.between(10.0, 4000.0), lambda: self._lose(name, pairs))

    def _lose(self, name: str, pairs: Sequence[Pair]) -> None:
        count = sum(self._network.lose_connections(*pair) for pair in pairs)
        told = f"{name}: {count} connections are lost, and what was sent still arrives"
        effect = self._announce("lost connections", told)
        if count:
            effect()

    def refuse(self, node: str) -> None:
        """Connections to a node, or from it, are refused although it listens; those that are open stay."""
        others = [*self._nodes, *self._clients]
        chosen = [each for each in others if each != node and self._random.chance(0.5)]
        inwards = self._random.chance(0.7)
        name = self._next_name("refusal")
        effect = self._announce("refused connections", f"{name}: connections {'to' if inwards else 'from'} {node}")
        self._network.refuse(name, [(each, node) if inwards else (node, each) for each in chosen], effect)
        self._later(self._random.between(50.0, 3000.0), lambda: self._network.stop_refusing(name))

    def _shape(self, node: str) -> tuple[str, list[Pair]]:
        others = [each for each in self._nodes if each != node]
        kind = self._random.choice(("alone", "deaf", "mute", "pair", "ring", "halves"))
        match kind:
            case "alone":
                pairs = list(_both_ways([node], others))
            case "deaf":
                pairs = [(other, node) for other in others]
            case "mute":
                pairs = [(node, other) for other in others]
            case "pair":
                other = self._random.choice(others)
                pairs = [(node, other)] if self._random.chance(0.5) else list(_both_ways([node], [other]))
            case "ring":
                ring = [node, *others]
                forward = {(ring[slot - 1], each) for slot, each in enumerate(ring)}
                pairs = [pair for pair in permutations(ring, 2) if pair not in forward]
            case _:
                side = [node, *(other for other in others if self._random.chance(0.5))]
                pairs = list(_both_ways(side, [other for other in others if other not in side]))
        return kind, pairs

    def _make_healthy(self) -> None:
        self._network.conditions = self._healthy

    def _next_name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"

    def _name(self, node: str) -> str:
        return f"{node}: " if len(self._nodes) > 1 else ""


def _both_ways(side: Sequence[str], other_side: Sequence[str]) -> Iterator[Pair]:
    for one in side:
        for other in other_side:
            yield one, other
            yield other, one
