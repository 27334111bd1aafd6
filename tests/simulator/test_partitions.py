"""Partitions of the simulated network: named, one-way and overlapping; and other faults of the network."""

from simulator.network import Pair, SimNetwork
from simulator.process import Process
from tests.simulator.test_sim_network import Peer, Scene

BOTH_WAYS: list[Pair] = [("client", "node"), ("node", "client")]


def test_overlapping_partitions_heal_one_by_one() -> None:
    scene = Scene(echo=True)
    client, server = scene.connect()
    scene.network.partition("all", BOTH_WAYS)
    scene.network.partition("back", [("node", "client")])
    client.transport.write([b"hello"])
    scene.clock.run_for(1000)
    assert server.got == b""
    scene.network.heal("all")
    scene.clock.run_for(1000)
    assert (server.got, client.got) == (b"hello", b"")
    assert scene.network.partitions == ["back"]
    scene.network.heal("back")
    scene.clock.run_until_idle()
    assert client.got == b"hello"


def test_a_ring_lets_each_host_reach_only_its_next_neighbour() -> None:
    network: SimNetwork = Scene().network
    network.partition("ring", [("a", "c"), ("b", "a"), ("c", "b")])
    assert [network.is_cut(*pair) for pair in (("a", "b"), ("b", "c"), ("c", "a"))] == [False] * 3
    assert [network.is_cut(*pair) for pair in (("b", "a"), ("c", "b"), ("a", "c"))] == [True] * 3


def test_a_live_host_may_seem_to_refuse_connections_from_one_host_only() -> None:
    scene = Scene()
    scene.network.refuse("lie", [("client", "node")])
    scene.start_connecting()
    others = scene.start_connecting("other")
    scene.clock.run_until_idle()
    assert [type(error) for error in scene.failures] == [ConnectionRefusedError]
    assert len(others) == 1
    scene.network.stop_refusing("lie")
    scene.connect()


def paused_scene() -> tuple[Scene, Process]:
    scene = Scene(echo=True)
    scene.network.crash("node")
    process = Process(scene.clock)
    scene.network.host("node", process).listen("0.0.0.0", 9092, scene.accept)
    return scene, process


def test_a_paused_host_accepts_connections_and_bytes_and_answers_after_the_pause() -> None:
    scene, process = paused_scene()
    process.pause()
    clients = scene.start_connecting()
    scene.clock.run_for(1000)
    client: Peer = clients[0]
    client.transport.write([b"hello"])
    scene.clock.run_for(60_000)
    assert (scene.servers, client.got, client.ends) == ([], b"", [])
    process.resume()
    scene.clock.run_until_idle()
    assert client.got == b"hello"


def test_a_paused_host_that_crashes_resets_connections_that_it_never_saw() -> None:
    scene, process = paused_scene()
    process.pause()
    clients = scene.start_connecting()
    scene.clock.run_for(1000)
    process.end()
    scene.network.crash("node")
    scene.clock.run_until_idle()
    assert (scene.servers, clients[0].ends) == ([], ["connection reset"])
