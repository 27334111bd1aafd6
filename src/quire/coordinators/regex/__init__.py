"""Regular expressions over names, in RE2's syntax as Apache Kafka's coordinators take them.

Whoever joins a group decides what the expression is, and the node's only thread runs it: so there is no backtracking.
`syntax` reads an expression, `automaton` follows all its paths at once, one step for each character of a name, and
`characters` knows that a topic's name has only 65 different ones. Other names have alphabets of their own.

    regex = TopicRegex("orders-.*")        # RegexError, with RE2's words, for what is no regular expression
    regex.matching(["orders-eu", "eu"])    # the whole name or not at all
"""

from quire.coordinators.regex.automaton import Regex, TopicRegex
from quire.coordinators.regex.characters import Alphabet
from quire.coordinators.regex.syntax import RegexError

__all__ = ["Alphabet", "Regex", "RegexError", "TopicRegex"]
