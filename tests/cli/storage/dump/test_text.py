import json

from quire.cli.storage.dump.facts import Fact, problem
from quire.cli.storage.dump.json_lines import json_line
from quire.cli.storage.dump.text import MAX_SHOWN, TextLines, readable

BATCH = Fact(
    "batch",
    {
        "base_offset": 10,
        "last_offset": 19,
        "position": 0,
        "size": 312,
        "record_count": 10,
        "compression": "zstd",
        "leader_epoch": 2,
        "crc": 1,
        "timestamp_type": "CreateTime",
        "base_timestamp": 0,
        "delete_horizon": None,
        "max_timestamp": 1_700_000_000_123,
        "producer_id": 5,
        "producer_epoch": 0,
        "base_sequence": 0,
        "last_sequence": 9,
        "transactional": True,
        "control": None,
    },
)
FILE = Fact("file", {"kind": "segment", "size": 624})


def lines(*facts: Fact) -> list[str]:
    text = TextLines()
    return [line for fact in facts for line in text.lines("orders-0/x.log", fact)]


def test_batches_are_aligned_in_columns_under_one_row_of_titles() -> None:
    head, titles, first, second = lines(FILE, BATCH, BATCH)
    assert head == "orders-0/x.log  (segment, 624 bytes)"
    assert first == second
    for title, cell in [("OFFSETS", "10..19"), ("SIZE", "312"), ("RECORDS", "10"), ("EPOCH", "2")]:
        assert titles.index(title) + len(title) == first.index(cell, titles.index(title) - 10) + len(cell)
    for title, cell in [("CODEC", "zstd"), ("PRODUCER", "5/0"), ("SEQUENCE", "0..9"), ("LATEST", "2023-11-14T22:13")]:
        assert titles.index(title) == first.index(cell, titles.index(title))
    assert first.endswith("transactional")


def test_the_next_file_is_set_apart_and_has_its_own_titles() -> None:
    shown = lines(FILE, BATCH, FILE, BATCH)
    assert shown[3] == ""
    assert shown[:3] == shown[4:]


def test_a_record_is_one_line() -> None:
    headers = [{"name": "trace", "value": b"x"}, {"name": "none", "value": None}]
    record = Fact("record", {"offset": 3, "timestamp": 0, "key": b"k", "value": b'{"total": 5}\n', "headers": headers})
    (line,) = lines(record)
    assert line.split(None, 3) == [
        "|",
        "3",
        "1970-01-01T00:00:00.000Z",
        'key=k  value="{\\"total\\": 5}\\n"  trace:x  none:null',
    ]


def test_a_decoded_record_shows_what_is_set() -> None:
    value = {"offset": 42, "metadata": "", "commit_timestamp": 0, "members": [], "leader": None}
    record = {"offset": 3, "timestamp": 0, "record": "OffsetCommit", "key": {"group": "g"}, "value": value}
    (line,) = lines(Fact("record", record))
    assert line.endswith('OffsetCommit  group=g  ->  offset=42 metadata="" commit_timestamp=1970-01-01T00:00:00.000Z')
    (gone,) = lines(Fact("record", {**record, "value": None}))
    assert gone.endswith("OffsetCommit  group=g  ->  null")
    (nested,) = lines(Fact("record", {**record, "value": {"members": [{"id": "m", "assignment": b"\xff"}]}}))
    assert nested.endswith('members=[{"id":"m","assignment_base64":"/w=="}]')


def test_text_that_could_be_mistaken_is_in_quotes() -> None:
    assert readable(b"plain text, {}") == "plain text, {}"
    assert readable("été".encode()) == "été"
    assert readable(None) == "null"
    assert readable(b"null") == '"null"'
    assert readable(b"") == '""'
    assert readable(b" x") == '" x"'
    assert readable(b"0xff") == '"0xff"'
    assert readable(b"\xff") == "0xff"
    assert readable(b'"') == '"\\""'
    assert readable(b"\x1b[31m") == '"\\u001b[31m"'


def test_a_long_value_is_cut_for_people_and_whole_for_programs() -> None:
    value = b"x" * (MAX_SHOWN + 1)
    assert readable(value) == "x" * MAX_SHOWN + "... (1001 characters)"
    assert json.loads(json_line("p", Fact("record", {"value": value})))["value"] == value.decode()


def test_a_problem_says_where() -> None:
    assert lines(problem(312, "Its checksum does not match.")) == [
        "  PROBLEM at position 312: Its checksum does not match"
    ]
    assert lines(problem(None, "no")) == ["  PROBLEM: no"]


def test_json_has_the_file_and_bytes_that_are_no_text_in_base64() -> None:
    fields: dict[str, object] = {"key": b"\xff", "headers": [{"name": "h", "value": b"\xfe"}], "value": {"a": b"b"}}
    assert json.loads(json_line("orders-0/x.log", Fact("record", fields))) == {
        "file": "orders-0/x.log",
        "type": "record",
        "key_base64": "/w==",
        "headers": [{"name": "h", "value_base64": "/g=="}],
        "value": {"a": "b"},
    }


def test_every_kind_of_row_can_be_shown() -> None:
    assert lines(Fact("checkpoint_entry", {"topic": "orders", "partition": 3, "offset": 9}))[1].split() == [
        "9",
        "orders-3",
    ]
    assert lines(Fact("index_end", {"entries": 1, "unused_entries": 1000, "compared_with_log": True})) == [
        "  1 entry, room for 1,000 more, compared with the log"
    ]
    empty: dict[str, object] = {"batches": 0, "records": 0, "first_offset": None, "last_offset": None}
    assert lines(Fact("log_end", empty)) == ["  0 batches, 0 records"]
    assert lines(Fact("properties", {"node.id": 1, "x": None})) == ["  node.id = 1", "  x = null"]
