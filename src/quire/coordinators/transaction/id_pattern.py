"""Transactional ids by a regular expression, for ListTransactions. As Kafka has it: RE2, and the whole id must match.

Anybody may send any expression, so it is one that cannot take long (`regex`). It is asked about the ids of all shards
at once: a limit that each shard had to itself would be reached as often as there are shards.
"""

from collections.abc import Generator

from quire.coordinators.regex import Alphabet, Regex, RegexError
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_transactions import TransactionState


def by_pattern(listed: list[TransactionState], pattern: str | None) -> Generator[None, None, list[TransactionState]]:
    """Those whose ids match; without a pattern, all. ApiError for what is no regular expression.

    Yields after each id: there may be many, and each may be long.
    """
    if not pattern:
        return listed
    characters: dict[str, None] = {}
    for each in listed:
        characters.update(dict.fromkeys(each.transactional_id))
        yield None
    used = "".join(characters)
    matching = []
    try:
        # In either case: what the expression says in one may stand in an id in the other.
        regex = Regex(pattern, Alphabet(used + used.lower() + used.upper()))
        for each in listed:
            if regex.matches(each.transactional_id):
                matching.append(each)
            yield None
        return matching
    except RegexError as error:
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None
