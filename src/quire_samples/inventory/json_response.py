"""What a request over HTTP is answered with: the view makes it, the server sends it."""

from typing import NamedTuple


class JsonResponse(NamedTuple):
    """An HTTP status, and the content of the body."""

    status: int
    content: dict[str, object]
