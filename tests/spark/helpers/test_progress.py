"""Reports of queries, and their sums. Without Spark: the JSON below is from Spark 4.2."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quire.spark.progress import QueryReport, Tally

PROGRESS: dict[str, Any] = {
    "runId": "run",
    "batchId": 3,
    "numInputRows": 400,
    "inputRowsPerSecond": 123.4,
    "processedRowsPerSecond": 500.0,
    "durationMs": {"triggerExecution": 780},
    "eventTime": {"watermark": "2026-01-01T00:09:00.000Z"},
    "stateOperators": [
        {
            "numRowsTotal": 740,
            "memoryUsedBytes": 1000,
            "numRowsDroppedByWatermark": 15,
            "customMetrics": {"numDroppedDuplicateRows": 13},
        },
        {"numRowsTotal": 4, "memoryUsedBytes": 24, "numRowsDroppedByWatermark": 0, "customMetrics": {}},
    ],
    "sources": [{"endOffset": {"a": {"id": "x", "offsets": {"0": 5, "1": 7}}}}, {"endOffset": {"logOffset": 3}}],
    "observedMetrics": {"kept": {"counted": 345, "bots": 24, "dead_letters": 3}},
}


def report(batch_id: int, rows: int = 1, **counts: int) -> QueryReport:
    return QueryReport.from_progress({"batchId": batch_id, "numInputRows": rows, "observedMetrics": {"kept": counts}})


def test_a_report_has_what_is_of_interest_in_sparks_progress() -> None:
    found = QueryReport.from_progress(PROGRESS)
    assert (found.batch_id, found.rows, found.rows_per_second, found.batch_ms) == (3, 400, 123.4, 780)
    assert (found.state_rows, found.state_bytes, found.late, found.duplicates) == (744, 1024, 15, 13)
    assert found.offsets == {("a", 0): 5, ("a", 1): 7}
    assert found.counts == {"counted": 345, "bots": 24, "dead_letters": 3}
    assert found.watermark == "2026-01-01T00:09:00.000Z"


def test_a_query_of_several_branches_says_itself_how_many_rows_it_read() -> None:
    found = QueryReport.from_progress(PROGRESS | {"observedMetrics": {"read": {"rows": 100}}})
    assert (found.rows, found.counts) == (100, {})


def test_the_counts_of_several_parts_of_a_query_are_added_up() -> None:
    observed = {"sink_rows_0": {"dead_letters": 2}, "sink_rows_1": {"dead_letters": 3}, "kept": {"bots": None}}
    assert QueryReport.from_progress(PROGRESS | {"observedMetrics": observed}).counts == {"dead_letters": 5, "bots": 0}


def test_the_accounts_of_a_query_add_up_to_its_rows() -> None:
    tally = Tally(last_batch=2)
    tally.add(QueryReport.from_progress(PROGRESS))
    assert tally.accounts() == {"counted": 345, "bots": 24, "dead_letters": 3, "duplicates": 13, "late": 15}
    assert tally.adds_up
    tally.add(report(4, rows=2, counted=1))
    assert not tally.adds_up


def test_a_batch_reported_twice_counts_once_and_a_missing_report_is_detected() -> None:
    tally = Tally()
    for batch_id in (0, 1, 1, 0):
        tally.add(report(batch_id, rows=1, counted=1))
    assert (tally.rows, tally.missed, tally.adds_up) == (2, 0, True)
    tally.add(report(4, rows=1, counted=1))
    assert (tally.rows, tally.missed, tally.adds_up) == (3, 2, False)


def test_a_batch_that_a_killed_run_did_and_did_not_tell_of_is_missed_before_this_run_and_not_in_it() -> None:
    before = Tally(last_batch=4)
    before.done_up_to(4)
    assert before == Tally(last_batch=4)
    before.done_up_to(6)
    assert before == Tally(last_batch=6, missed=2)
    tally = Tally.from_json(before.to_json())
    tally.add(QueryReport.from_progress(PROGRESS | {"batchId": 7}))
    assert (tally - before).missed == 0


def test_a_tally_survives_json() -> None:
    tally = Tally()
    tally.add(QueryReport.from_progress(PROGRESS))
    assert Tally.from_json(tally.to_json()) == tally


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))), st.integers(0, 10))
def test_recent_progress_is_the_sum_of_the_reports_since(counts: list[tuple[int, int]], cut: int) -> None:
    whole, since = Tally(), Tally()
    before = Tally()
    for batch_id, (good, bots) in enumerate(counts):
        if batch_id == cut:
            before = Tally.from_json(whole.to_json())
        one = report(batch_id, rows=good + bots, good=good, bots=bots)
        whole.add(one)
        if batch_id >= cut:
            since.rows += one.rows
            since.batches += 1
    if cut >= len(counts):
        before = Tally.from_json(whole.to_json())
    difference = whole - before
    assert (difference.rows, difference.batches) == (since.rows, since.batches)
    assert difference.adds_up
