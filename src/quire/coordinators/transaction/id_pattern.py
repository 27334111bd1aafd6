"""Filters transactional ids by a regular expression, for ListTransactions. As in Kafka: RE2, on the whole id.

Any client may send any expression, so matching must take linear time (`regex`). The filter runs over the ids of all
shards at once, so that the limit on an expression's cost counts once per request and not once per shard.
"""

from collections.abc import Generator

from quire.coordinators.regex import Alphabet, Regex, RegexError
from quire.protocol.errors import ApiError, ErrorCode
from quire.protocol.messages.list_transactions import TransactionState


def by_pattern(listed: list[TransactionState], pattern: str | None) -> Generator[None, None, list[TransactionState]]:
    """The transactions whose ids match; all if there is no pattern. ApiError for an invalid regular expression.

    Yields after each id, because there may be many long ones.
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
        # In both cases, because expressions can ignore case.
        regex = Regex(pattern, Alphabet(used + used.lower() + used.upper()))
        for each in listed:
            if regex.matches(each.transactional_id):
                matching.append(each)
            yield None
        return matching
    except RegexError as error:
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None
