"""Regular expressions over topic names, in RE2's syntax as Apache Kafka's coordinator takes them (KIP-848).

Whoever joins a group decides what the expression is, and the node's only thread runs it: so there is no backtracking.
`syntax` reads an expression, `automaton` follows all its paths at once, one step for each character of a name, and
`characters` knows that a name has only 65 different ones.

    regex = TopicRegex("orders-.*")        # RegexError, with RE2's words, for what is no regular expression
    regex.matches("orders-eu")             # the whole name or not at all
"""

from quire.coordinators.group.consumer.regex.automaton import TopicRegex
from quire.coordinators.group.consumer.regex.syntax import RegexError

__all__ = ["RegexError", "TopicRegex"]
