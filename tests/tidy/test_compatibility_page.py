"""docs/compatibility.md lists every API of Kafka, with exactly the versions this node answers."""

import re
from pathlib import Path

from quire.node.api import SERVED
from quire.protocol.apis import APIS, VALID_VERSIONS, api_key

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
ROW = re.compile(r"^\| (\d+) \| (\w+) \| (\d+) to (\d+) \| (.*?) \|$", re.MULTILINE)


def test_every_api_is_listed_with_the_versions_that_are_answered() -> None:
    rows = {name: (int(oldest), int(newest), quire) for _, name, oldest, newest, quire in ROW.findall(PAGE.read_text())}
    assert list(rows) == [api.name for api in APIS if api.newest >= 0]
    for api in APIS:
        if api.newest < 0:
            continue
        oldest, newest, quire = rows[api.name]
        assert (oldest, newest) == (api.oldest, api.newest)
        served = SERVED.get(api.name)
        if served is None:
            assert quire == "no", f"{api.name} is not answered"
        else:
            assert quire.startswith(f"{served.oldest} to {served.newest}"), api.name


def test_no_version_is_served_that_the_protocol_does_not_have() -> None:
    for name, served in SERVED.items():
        oldest, newest = VALID_VERSIONS[api_key(name)]
        assert oldest <= served.oldest <= served.newest <= newest, name
