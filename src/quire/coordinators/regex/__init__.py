"""Regular expressions for names, in the syntax of RE2, which Apache Kafka's coordinators use.

Clients choose the expressions, and the single thread of the node matches them, so there is no backtracking. `syntax`
parses an expression, `automaton` follows all its paths at once, one step for each character, and `characters` has the
65 characters of topic names. Other names have alphabets of their own.

    regex = TopicRegex("orders-.*")        # RegexError, with RE2's message, if the expression is invalid
    regex.matching(["orders-eu", "eu"])    # matches whole names only
"""

from quire.coordinators.regex.automaton import Regex, TopicRegex
from quire.coordinators.regex.characters import Alphabet
from quire.coordinators.regex.syntax import RegexError

__all__ = ["Alphabet", "Regex", "RegexError", "TopicRegex"]
