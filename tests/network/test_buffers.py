"""The memory of requests: kept for reuse within bounds, shared within a limit, waited for in turn."""

from quire.network.buffers import SMALL_BYTES, BufferPool

MB = 1024 * 1024


def take(pool: BufferPool, size: int) -> memoryview | None:
    return pool.large(size, size, instead_of=memoryview(b""))


def taken(pool: BufferPool, size: int) -> memoryview:
    buffer = take(pool, size)
    assert buffer is not None
    return buffer


def test_a_buffer_given_back_is_the_next_one_handed_out() -> None:
    pool = BufferPool(10 * MB)
    small = pool.small()
    assert len(small) == SMALL_BYTES
    pool.give_back(small)
    assert pool.small() is small
    large = taken(pool, MB)
    assert len(large) >= MB
    pool.give_back(large)
    assert taken(pool, MB - 5000) is large


def test_the_smallest_kept_buffer_that_fits_is_used() -> None:
    pool = BufferPool(10 * MB)
    two, one, three = taken(pool, 2 * MB), taken(pool, MB), taken(pool, 3 * MB)
    for buffer in (two, one, three):
        pool.give_back(buffer)
    assert taken(pool, MB + 1) is two


def test_growing_takes_a_buffer_that_fits_all_if_one_lies_about_and_a_modest_one_if_not() -> None:
    pool = BufferPool(100 * MB)
    modest = pool.large(50 * MB, 128 * 1024, instead_of=pool.small())
    assert modest is not None
    assert len(modest) == 128 * 1024
    pool.give_back(taken(pool, 5 * MB))
    fitting = pool.large(5 * MB, 128 * 1024, instead_of=pool.small())
    assert fitting is not None
    assert len(fitting) == 5 * MB


def test_no_more_is_kept_than_the_pool_may_keep() -> None:
    pool = BufferPool(100 * MB, keep_bytes=2 * MB, keep_small=2)
    large = [taken(pool, MB) for _ in range(5)]
    for buffer in large:
        pool.give_back(buffer)
    again = [taken(pool, MB) for _ in range(5)]
    assert sum(any(buffer is kept for kept in large) for buffer in again) == 2
    small = [pool.small() for _ in range(5)]
    for buffer in small:
        pool.give_back(buffer)
    small_again = [pool.small() for _ in range(5)]
    assert sum(any(buffer is kept for kept in small) for buffer in small_again) == 2


def test_one_may_go_beyond_the_limit_and_the_others_wait_in_turn() -> None:
    pool = BufferPool(2 * MB)
    first, second = taken(pool, MB), taken(pool, MB)
    beyond = taken(pool, MB)
    assert take(pool, MB) is None
    got: list[str] = []

    def retry(name: str) -> bool:
        if take(pool, MB) is None:
            return False
        got.append(name)
        return True

    owners = {name: object() for name in "abcd"}
    for name, owner in owners.items():
        pool.wait(owner, lambda name=name: retry(name))  # type: ignore[misc]
    pool.stop_waiting(owners["b"])
    assert got == []
    pool.give_back(first)
    assert got == ["a"]
    pool.give_back(beyond)
    assert got == ["a", "c"]
    pool.give_back(second)
    assert got == ["a", "c", "d"]
    assert pool.in_use_bytes == 3 * MB


def test_who_is_beyond_the_limit_may_grow_further() -> None:
    pool = BufferPool(MB)
    taken(pool, MB)
    beyond = taken(pool, MB)
    larger = pool.large(4 * MB, 4 * MB, instead_of=beyond)
    assert larger is not None
    pool.give_back(beyond)
    assert take(pool, MB) is None
    pool.give_back(larger)
    assert take(pool, MB) is not None
