"""Transactional ids by a regular expression, for ListTransactions. As Kafka has it: RE2, and the whole id must match.

Anybody may send any expression, so it is one that cannot take long (`regex`). It is asked about the ids of all shards
at once: a limit that each shard had to itself would be reached as often as there are shards.
"""

from quire.coordinators.regex import Alphabet, Regex, RegexError
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_transactions import TransactionState


def by_pattern(listed: list[TransactionState], pattern: str | None) -> list[TransactionState]:
    """Those whose ids match; without a pattern, all. ApiError for what is no regular expression."""
    if not pattern:
        return listed
    characters: dict[str, None] = {}
    for each in listed:
        characters.update(dict.fromkeys(each.transactional_id))
    used = "".join(characters)
    try:
        # In either case: what the expression says in one may stand in an id in the other.
        regex = Regex(pattern, Alphabet(used + used.lower() + used.upper()))
        return [each for each in listed if regex.matches(each.transactional_id)]
    except RegexError as error:
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None
