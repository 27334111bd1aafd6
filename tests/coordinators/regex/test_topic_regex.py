"""Expressions over topic names have the same meaning as in RE2, and no expression blocks the node."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.coordinators.regex import RegexError, TopicRegex
from quire.coordinators.regex.automaton import MOST_WORK
from quire.coordinators.regex.syntax import LONGEST_TEXT

MATCHES = [
    ("orders", "orders", "orders-eu my.orders Orders"),
    ("orders-.*", "orders- orders-eu", "orders my-orders-eu"),
    ("^orders$", "orders", "orders2"),
    ("eu|us|", "eu us", "euus"),
    ("(eu|us)\\.v[0-9]+", "eu.v1 us.v23", "eu.v euxv1"),
    ("a?b+c*", "b abbcc bc", "aab ac"),
    ("(ab){2,3}", "abab ababab", "ab abababab"),
    ("a{2,}", "aa aaaa", "a"),
    ("a{0}b", "b", "ab"),
    ("[a-c_.-]+", "a.b-c_ -", "d a1"),
    ("[^a-c]+", "def 09", "dad"),
    ("[]a]", "a", "b"),
    ("[a\\-z]+", "a-z", "b"),
    ("[\\d\\pLu]+", "9u", "_"),
    ("[[:upper:]][[:^upper:]]+", "Ab A1", "aB AB"),
    ("\\w+\\W\\w+", "a_b-c9", "ab"),
    ("\\S+\\s*", "a", ""),
    ("\\p{Lu}\\p{Ll}+\\pN", "Abc1", "abc1"),
    ("\\PL+", "1.2", "1a2"),
    ("\\p{^L}", "1", "a"),
    ("(?i)orders", "orders ORDERS OrDeRs", "order"),
    ("(?i:OR)ders", "orders ORders", "ORDERS"),
    ("a(?i)b|c", "ab aB c C", "AB"),
    ("(?i-s:a)b(?:c)", "abc Abc", "ABC"),
    ("(?P<region>eu)(?<more>.*)", "eu eu1", "us"),
    ("\\Qa.b*\\E.*", "", "a.b axb"),
    ("\\Qa.b\\E+", "a.b a.bbb", "axb"),
    ("\\x61\\x{62}\\143", "abc", "abd"),
    (".*\\beu\\b.*", "a-eu-b eu a.eu", "a_eu neu"),
    (".*e\\Bu.*", "eu1", "e.u"),
    ("\\Aeu\\z", "eu", "eu1"),
    ("a.*?b", "ab aab", "abc"),
    ("a{,2}", "", "aa a"),
    ("", "", "a"),
]


@pytest.mark.parametrize(("expression", "matching", "other"), MATCHES, ids=[expression for expression, _, _ in MATCHES])
def test_a_name_matches_as_a_whole_or_not_at_all(expression: str, matching: str, other: str) -> None:
    regex = TopicRegex(expression)
    assert [name for name in matching.split() if not regex.matches(name)] == []
    assert [name for name in other.split() if regex.matches(name)] == []


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("[", "missing closing ]: `[`"),
        ("a[bc", "missing closing ]: `[bc`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("[[:letters:]]", "invalid character class range: `[:letters:]`"),
        ("\\p{Letters}", "invalid character class range: `\\p{Letters}`"),
        ("a\\", "trailing \\ at end of expression: ``"),
        ("\\y", "invalid escape sequence: `\\y`"),
        ("(a)\\1", "invalid escape sequence: `\\1`"),
        ("(?=a)a", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)b", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?<=a)b", "invalid or unsupported Perl syntax: `(?<`"),
        ("(?>a)", "invalid or unsupported Perl syntax: `(?>`"),
        ("(?P<1 2>a)", "invalid named capture: `(?P<1 2>`"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name: `n`"),
    ],
)
def test_a_pattern_that_re2_does_not_accept_is_refused_with_the_reason(expression: str, reason: str) -> None:
    with pytest.raises(RegexError) as refusal:
        TopicRegex(expression)
    assert str(refusal.value) == reason


NAMES = st.text("aAbB1._-", max_size=6)


def expressions() -> st.SearchStrategy[str]:
    """Expressions that RE2 and Python's re parse in the same way."""
    atoms = st.sampled_from(
        ["a", "B", "1", r"\.", "-", "_", ".", "[ab]", "[^a1]", r"\d", r"\w", r"\W", r"\b", "[A-Z_]"]
    )
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda both: f"(?:{both[0]}|{both[1]})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}", "*?"])).map(
                lambda both: f"(?:{both[0]}){both[1]}"
            ),
        ),
        max_leaves=6,
    )


@given(expressions(), st.lists(NAMES, min_size=1, max_size=5))
def test_it_agrees_with_an_engine_that_backtracks(expression: str, names: list[str]) -> None:
    regex, other = TopicRegex(expression), re.compile(expression, re.ASCII)
    for name in names:
        assert regex.matches(name) == (other.fullmatch(name) is not None)


@pytest.mark.parametrize("expression", ["(a*)*b", "(a|a)*b", "(.*.*.*.*)*x", "([a-z]+)*1", "(a?){40}a{40}"])
def test_expressions_that_ruin_a_backtracking_engine_cost_little(expression: str) -> None:
    regex = TopicRegex(expression)
    regex.matches("a" * 249)
    assert regex._work < MOST_WORK / 5


def test_an_expression_that_finds_something_new_at_every_step_is_given_up() -> None:
    regex = TopicRegex("(.?){1000}.{1000}")
    with pytest.raises(RegexError, match="takes too long"):
        for number in range(1000):
            regex.matches(f"topic-{number:0200}")


@pytest.mark.parametrize("expression", ["((a{0,99}){0,99}){0,99}", "(" * 101 + ")" * 101, "(a{1000}){1000}"])
def test_an_expression_that_is_small_only_on_paper_is_refused(expression: str) -> None:
    with pytest.raises(RegexError, match=r"too large|too deeply"):
        TopicRegex(expression)


def test_an_expression_that_takes_long_to_read_is_refused_unread() -> None:
    TopicRegex("a" * LONGEST_TEXT)
    with pytest.raises(RegexError, match="too long: 32000 characters, and at most 10000"):
        TopicRegex("a" * 32_000)


def test_an_expression_of_all_names_that_there_are_is_none_that_is_too_large() -> None:
    names = [f"orders-of-region-{number:03}" for number in range(300)]
    assert TopicRegex("|".join(names)).matching([*names, "orders-of-region-300"]) == names


@given(st.text(max_size=20))
def test_any_text_is_an_expression_or_is_refused(text: str) -> None:
    try:
        TopicRegex(text).matches("orders")
    except RegexError as error:
        assert str(error)
