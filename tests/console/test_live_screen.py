from quire.console.live_screen import HOME, REST_OF_LINE, REST_OF_SCREEN, fit


def test_a_view_takes_the_place_of_the_one_before() -> None:
    assert fit("a\nbb", 80, 24) == f"{HOME}a{REST_OF_LINE}\nbb{REST_OF_LINE}\n{REST_OF_SCREEN}"


def test_lines_that_do_not_fit_the_screen_are_counted_and_nothing_scrolls() -> None:
    shown = fit("\n".join(f"line {number}" for number in range(30)), 80, 10)
    lines = shown.removeprefix(HOME).removesuffix(REST_OF_SCREEN).splitlines()
    assert len(lines) == 9
    assert lines[-1] == f"... 22 more lines{REST_OF_LINE}"
    assert "line 7" in lines[-2]


def test_long_lines_are_cut_with_a_sign_and_not_wrapped() -> None:
    assert fit("7" * 81, 80, 24) == f"{HOME}{'7' * 77}...{REST_OF_LINE}\n{REST_OF_SCREEN}"
    assert "7" * 80 in fit("7" * 80, 80, 24)
