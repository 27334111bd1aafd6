"""A fact as one line of JSON: `file`, `type`, then its fields. Bytes that are not UTF-8 are in `..._base64`."""

import base64

from quire.cli.storage.dump.facts import Fact
from quire.console.terminal import to_compact_json


def json_line(path: str, fact: Fact) -> str:
    return to_compact_json({"file": path, "type": fact.kind, **shown_fields(fact.fields)})


def shown_fields(fields: dict[str, object]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for name, value in fields.items():
        if isinstance(value, bytes):
            try:
                shown[name] = value.decode()
            except UnicodeDecodeError:
                shown[f"{name}_base64"] = base64.b64encode(value).decode()
        elif isinstance(value, dict):
            shown[name] = shown_fields(value)
        elif isinstance(value, list):
            shown[name] = [shown_fields(each) if isinstance(each, dict) else each for each in value]
        else:
            shown[name] = value
    return shown
