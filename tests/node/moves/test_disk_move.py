"""Replicas that lead and that follow move without losing anything, also if a directory fails meanwhile."""

from tests.node.moves.replicated_moves import is_moving, move, numbered, path_of, replicated


def test_leaders_and_followers_move_while_they_are_written_to() -> None:
    nodes = replicated()
    nodes.written(*numbered(0, 10))
    targets = {node_id: move(nodes, node_id) for node_id in (1, 2, 3)}
    nodes.written(*numbered(10, 30))
    nodes.until(lambda: not any(is_moving(nodes, node_id) for node_id in (1, 2, 3)))
    nodes.written(*numbered(30, 35))
    nodes.until(nodes.is_whole)
    for node_id, target in targets.items():
        assert path_of(nodes, node_id) == target
        assert nodes.values(node_id) == numbered(0, 35)
    assert len({nodes.content(node_id) for node_id in (1, 2, 3)}) == 1
    assert nodes.isr() == {1, 2, 3}


def test_a_replica_that_is_taken_away_stops_its_move() -> None:
    nodes = replicated(rate=100)
    nodes.written(*numbered(0, 10))
    nodes.until(nodes.is_whole)
    follower = nodes.others(nodes.leader_node())[0]
    target = move(nodes, follower)
    assert is_moving(nodes, follower)
    directory = nodes.nodes[follower].partitions.directory_of(nodes.partition(follower))
    directory.fail(OSError("broken"))
    assert not is_moving(nodes, follower)
    nodes.written(*numbered(10, 12))
    nodes.stop(follower)
    nodes.restart(follower)
    nodes.until(lambda: not is_moving(nodes, follower))
    nodes.until(nodes.is_whole)
    assert (path_of(nodes, follower), nodes.values(follower)) == (target, numbered(0, 12))
