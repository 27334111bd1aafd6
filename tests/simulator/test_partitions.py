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


def test_one_link_may_be_slower_than_the_others_and_than_the_way_back() -> None:
    scene = Scene(echo=True)
    client, server = scene.connect()
    scene.network.delay("slow", {("client", "node"): 700.0})
    began_ms = scene.clock.monotonic_ms()
    client.transport.write([b"hello"])
    scene.clock.run_until(lambda: server.got == b"hello")
    assert 700.0 < scene.clock.monotonic_ms() - began_ms < 750.0
    began_ms = scene.clock.monotonic_ms()
    scene.clock.run_until(lambda: client.got == b"hello")
    assert scene.clock.monotonic_ms() - began_ms < 50.0
    scene.network.stop_delaying("slow")
    assert scene.network.latency_between("client", "node") < 50.0


def test_what_was_sent_over_a_lost_connection_arrives_after_its_retry() -> None:
    scene = Scene()
    client, server = scene.connect()
    scene.network.delay("slow", {("client", "node"): 700.0})
    client.transport.write([b"request"])
    scene.clock.run_for(10.0)
    scene.network.stop_delaying()
    assert scene.network.lose_connections("client", "node") == 1
    again, server_again = scene.connect()
    again.transport.write([b"request"])
    scene.clock.run_until(lambda: server_again.got == b"request")
    assert (client.ends, server.got, server.ends) == (["connection reset"], b"", [])
    scene.clock.run_until_idle()
    assert (server.got, server.ends) == (b"request", ["connection reset by peer"])


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
