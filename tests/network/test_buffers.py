"""The memory of requests: reused within bounds, shared within a limit, given out in order of arrival."""

from quire.network.buffers import MODEST_BYTES, SMALL_BYTES, BufferPool

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


def test_growing_reuses_a_buffer_that_fits_all_or_takes_a_modest_one() -> None:
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


def test_memory_in_use_now_is_preferred_to_older_memory() -> None:
    pool = BufferPool(100 * MB, keep_bytes=8 * MB)
    for buffer in [taken(pool, MB) for _ in range(8)]:
        pool.give_back(buffer)
    four = taken(pool, 4 * MB)
    pool.give_back(four)
    assert taken(pool, 4 * MB) is four
    pool.give_back(taken(pool, 6 * MB))
    assert pool.spare(MB) is not None, "one buffer has taken the place of all others"


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
        pool.wait(owner, MB, lambda name=name: retry(name))  # type: ignore[misc]
    assert pool.is_short
    pool.stop_waiting(owners["b"])
    assert got == []
    pool.give_back(first)
    assert got == ["a"]
    pool.give_back(beyond)
    assert got == ["a", "c"]
    pool.give_back(second)
    assert got == ["a", "c", "d"]
    assert not pool.is_short
    assert pool.in_use_bytes == 3 * MB


def test_a_connection_beyond_the_limit_may_grow_further() -> None:
    pool = BufferPool(MB)
    taken(pool, MB)
    beyond = taken(pool, MB)
    larger = pool.large(MODEST_BYTES, MODEST_BYTES, instead_of=beyond)
    assert larger is not None
    pool.give_back(beyond)
    assert take(pool, MB) is None
    pool.give_back(larger)
    assert take(pool, MB) is not None


def test_the_last_quarter_is_for_modest_requests() -> None:
    pool = BufferPool(16 * MB)
    for _ in range(3):
        taken(pool, 4 * MB)
    beyond = taken(pool, 10 * MB)
    assert take(pool, 2 * MB) is None
    modest = [taken(pool, MB) for _ in range(4)]
    last = taken(pool, MB)
    assert take(pool, MB) is None
    pool.give_back(last)
    pool.give_back(modest.pop())
    pool.give_back(beyond)
    assert taken(pool, 2 * MB)
    assert taken(pool, MB)


def test_huge_requests_that_wait_do_not_hold_modest_ones_up() -> None:
    pool = BufferPool(4 * MB)
    buffers = [taken(pool, MB) for _ in range(4)]
    taken(pool, MB)
    taken(pool, 2 * MB)
    got: list[str] = []

    def retry(name: str, size: int) -> bool:
        if take(pool, size) is None:
            return False
        got.append(name)
        return True

    pool.wait("huge", 2 * MB, lambda: retry("huge", 2 * MB))
    pool.wait("modest", MB, lambda: retry("modest", MB))
    for buffer in buffers[:2]:
        pool.give_back(buffer)
    assert got == ["modest"]


def test_thousands_may_wait_and_are_served_at_once() -> None:
    pool = BufferPool(1000 * MB)
    everything = taken(pool, 740 * MB)
    taken(pool, 100 * MB)
    olds = [taken(pool, 64 * 1024) for _ in range(1500)]
    served = 0

    def retry(old: memoryview) -> bool:
        nonlocal served
        if pool.large(2 * MB, 128 * 1024, instead_of=old) is None:
            return False
        pool.give_back(old)
        served += 1
        return True

    for i, old in enumerate(olds):
        pool.wait(i, 2 * MB, lambda old=old: retry(old))  # type: ignore[misc]
    pool.give_back(everything)
    assert served == 1500


def test_spare_buffers_are_within_the_limit_too() -> None:
    pool = BufferPool(4 * MB)
    buffers = [taken(pool, MB) for _ in range(4)]
    kept = taken(pool, MB)
    pool.give_back(kept)
    assert pool.spare(MB) is None
    pool.give_back(buffers[0])
    assert pool.spare(MB) is not None


def test_no_connection_gets_memory_before_those_that_wait() -> None:
    pool = BufferPool(4 * MB)
    buffers = [taken(pool, MB) for _ in range(4)]
    taken(pool, MB)
    got: list[str] = []

    def retry() -> bool:
        if pool.large(MB, MB, instead_of=memoryview(b"")) is None:
            return False
        got.append("waiting")
        return True

    pool.wait("waiting", MB, retry)
    smaller = pool.large(64 * 1024, 64 * 1024, instead_of=memoryview(b""))
    assert smaller is None
    for buffer in buffers[:2]:
        pool.give_back(buffer)
    assert got == ["waiting"]


def test_a_connection_beyond_the_limit_grows_before_those_that_wait() -> None:
    pool = BufferPool(4 * MB)
    taken(pool, 3 * MB)
    beyond = taken(pool, 2 * MB)
    pool.wait("waiting", 2 * MB, lambda: False)
    assert take(pool, 2 * MB) is None
    assert pool.large(4 * MB, 4 * MB, instead_of=beyond) is not None


def test_there_is_more_for_those_whose_large_requests_have_come_whole_before() -> None:
    pool = BufferPool(16 * MB)
    for _ in range(16):
        taken(pool, MB)
    taken(pool, MB)
    pool.wait("unproven", MB, lambda: False)
    assert take(pool, MB) is None
    assert pool.large(MB, MB, instead_of=memoryview(b""), proven=True) is not None
    assert pool.large(MB, MB, instead_of=memoryview(b""), proven=True) is None


def test_the_proven_and_the_others_are_served_in_turns() -> None:
    pool = BufferPool(8 * MB)
    buffers = [taken(pool, MB) for _ in range(8)]
    taken(pool, MB)
    got: list[str] = []

    def retry(name: str, proven: bool) -> bool:
        if pool.large(MB, MB, instead_of=memoryview(b""), proven=proven) is None:
            return False
        got.append(name)
        return True

    for i in range(3):
        pool.wait(f"other {i}", MB, lambda i=i: retry(f"other {i}", False), proven=False)  # type: ignore[misc]
        pool.wait(f"proven {i}", MB, lambda i=i: retry(f"proven {i}", True), proven=True)  # type: ignore[misc]
    for buffer in buffers[:7]:
        pool.give_back(buffer)
    assert sorted(got) == ["other 0", "other 1", "other 2", "proven 0", "proven 1", "proven 2"]
    assert got.index("proven 0") == 0
    assert got.index("other 0") < got.index("proven 2")
    assert not pool.is_short


def test_a_modest_request_reserves_all_the_memory_it_needs_and_never_waits_for_more() -> None:
    pool = BufferPool(2 * MB)
    first = pool.large(MB, 128 * 1024, instead_of=pool.small())
    assert first is not None
    assert len(first) == 128 * 1024
    assert pool.in_use_bytes == pool.held_bytes(first) == MB
    other = taken(pool, MB)
    beyond = taken(pool, MB)
    assert take(pool, MB) is None
    second = pool.large(MB, 512 * 1024, instead_of=first)
    assert second is not None
    pool.give_back(first)
    assert pool.held_bytes(second) == MB
    third = pool.large(MB, MB, instead_of=second)
    assert third is not None
    pool.give_back(second)
    assert pool.in_use_bytes == 3 * MB
    for buffer in (third, other, beyond):
        pool.give_back(buffer)
    assert pool.in_use_bytes == 0


def test_a_buffer_that_a_request_holds_is_not_reused_before_it_is_released() -> None:
    pool = BufferPool(3 * MB)
    small, large = pool.small(), taken(pool, MB)
    for part in (small[100:200], large[100:200], large[300:400]):
        pool.hold(part)
    pool.give_back(small)
    pool.give_back(large)
    assert pool.small() is not small
    assert pool.in_use_bytes == len(large)
    assert taken(pool, MB) is not large
    pool.unhold(large[:5])
    assert taken(pool, MB) is not large
    pool.unhold(large[5:9])
    assert taken(pool, MB) is large
    pool.unhold(small[:1])
    assert pool.small() is small


def test_a_buffer_that_was_held_and_released_before_its_return_is_like_any_other() -> None:
    pool = BufferPool(3 * MB)
    large = taken(pool, MB)
    pool.hold(large[:10])
    pool.unhold(large[:10])
    pool.give_back(large)
    assert pool.in_use_bytes == 0
    assert taken(pool, MB) is large
