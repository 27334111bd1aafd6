from hypothesis import given, settings
from hypothesis import strategies as st

from quire.client.fetched import AbortedTransaction, Fetched
from quire.client.offsets import TopicPartition
from quire.protocol.records import ControlRecordType, Record, build_batch, build_control_batch

TOPIC_PARTITION = TopicPartition("t", 0)


def batch(base_offset: int, *values: bytes, producer_id: int = -1) -> bytes:
    records = [Record(value=value, timestamp=1) for value in values]
    transactional = producer_id >= 0
    epoch = 0 if transactional else -1
    return bytes(
        build_batch(
            records,
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=epoch,
            transactional=transactional,
        )
    )


def marker(base_offset: int, kind: ControlRecordType, producer_id: int) -> bytes:
    content = [(kind, bytes(6))]
    return bytes(build_control_batch(content, 1, base_offset=base_offset, producer_id=producer_id, producer_epoch=0))


def values(data: bytes, *, start: int = 0, aborted: list[AbortedTransaction] | None = None) -> list[bytes | None]:
    fetched = Fetched(TOPIC_PARTITION, start, 0, 0, data, aborted or [])
    return [record.value for record in fetched.records()]


def test_reading_starts_inside_a_batch_at_the_offset_asked_for() -> None:
    assert values(batch(10, b"a", b"b", b"c") + batch(13, b"d"), start=12) == [b"c", b"d"]


def test_a_batch_cut_off_at_the_end_is_left_for_the_next_fetch() -> None:
    data = batch(0, b"whole") + batch(1, b"cut off")[:-3]
    assert values(data) == [b"whole"]


def test_markers_are_never_shown() -> None:
    data = batch(0, b"a", producer_id=7) + marker(1, ControlRecordType.COMMIT, 7) + batch(2, b"b")
    assert values(data) == [b"a", b"b"]


def test_aborted_transactions_are_left_out_up_to_their_marker_and_no_further() -> None:
    data = (
        batch(0, b"lost", producer_id=7)
        + batch(1, b"kept", producer_id=8)
        + batch(2, b"lost too", producer_id=7)
        + marker(3, ControlRecordType.ABORT, 7)
        + batch(4, b"next", producer_id=7)
        + marker(5, ControlRecordType.COMMIT, 7)
        + batch(6, b"plain")
    )
    assert values(data, aborted=[AbortedTransaction(7, 0)]) == [b"kept", b"next", b"plain"]


def test_a_transaction_before_the_aborted_one_of_the_same_producer_stays() -> None:
    data = (
        batch(0, b"kept", producer_id=7)
        + marker(1, ControlRecordType.COMMIT, 7)
        + batch(2, b"lost", producer_id=7)
        + marker(3, ControlRecordType.ABORT, 7)
    )
    assert values(data, aborted=[AbortedTransaction(7, 2)]) == [b"kept"]


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["write", "write", "commit", "abort"])), max_size=30),
    first=st.integers(0, 100),
    count=st.integers(1, 100),
)
def test_every_piece_shows_only_committed_and_plain_records(
    steps: list[tuple[int, str]], first: int, count: int
) -> None:
    """Producer 0 writes without transactions, the others in transactions; those still open at the end are aborted."""
    pieces: list[tuple[int, bytes]] = []
    records: list[tuple[int, bytes, int | None]] = []  # offset, value, number of the transaction
    running: dict[int, tuple[int, int]] = {}  # producer: number and first offset
    ended: dict[int, str] = {}
    aborted: list[tuple[AbortedTransaction, int]] = []
    offset = 0

    def end(producer: int, how: str) -> None:
        nonlocal offset
        number, began = running.pop(producer)
        ended[number] = how
        pieces.append((offset, marker(offset, ControlRecordType[how.upper()], producer)))
        if how == "abort":
            aborted.append((AbortedTransaction(producer, began), offset))
        offset += 1

    for number, (producer, step) in enumerate(steps):
        if step == "write":
            if producer:
                running.setdefault(producer, (number, offset))
            both = [b"%d" % offset, b"%d" % (offset + 1)]
            pieces.append((offset + 1, batch(offset, *both, producer_id=producer or -1)))
            transaction = running[producer][0] if producer else None
            records += [(offset + index, value, transaction) for index, value in enumerate(both)]
            offset += 2
        elif producer in running:
            end(producer, step)
    for producer in list(running):
        end(producer, "abort")
    held = [data for last_offset, data in pieces if last_offset >= first][:count]
    stop = max((last for last, data in pieces if data in held), default=-1)
    overlapping = [known for known, marked in aborted if marked >= first and known.first_offset <= stop]
    expected = [
        value
        for at, value, transaction in records
        if first <= at <= stop and (transaction is None or ended[transaction] == "commit")
    ]
    assert values(b"".join(held), start=first, aborted=overlapping) == expected
