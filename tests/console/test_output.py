from quire.console.output import format_table, numbers


def test_columns_fit_their_content_and_numbers_are_right_aligned() -> None:
    table = format_table(("name", "partitions"), [("orders", 3), ("a", 12)])
    assert table == "NAME    PARTITIONS\norders           3\na               12"


def test_nothing_to_show_is_a_dash_and_the_column_stays_numeric() -> None:
    assert format_table(("a", "b"), [(1, None), (None, None)]) == "A  B\n1  -\n-  -"


def test_no_line_ends_in_blanks() -> None:
    for line in format_table(("name", "x"), [("a", "b"), ("long name", "")]).splitlines():
        assert line == line.rstrip()


def test_lists_of_nodes_share_one_cell() -> None:
    assert numbers([1, 2]) == "1,2"
    assert numbers([]) == "-"
