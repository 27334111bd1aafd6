"""The options --listen, --data and --ephemeral as settings, above those of the file and the environment.

An option may replace an address or a folder. It never replaces what the same command line says with --set, nor anything
but one plaintext listener: a node that was configured to ask clients who they are must not become open by an option.
`check_precedence` covers settings that hide each other.
"""

from collections.abc import Mapping
from typing import NoReturn

from quire.config.broker_keys import BROKER_KEYS
from quire.config.errors import ContradictionError
from quire.config.layers import Setting
from quire.config.listeners import Listener, parse_listeners, parse_protocol_map
from quire.config.standalone import CONTROLLER_NAME, is_for_clients, listening_on
from quire.config.topic_keys import BROKER_SYNONYMS

FREE_PORT = "127.0.0.1:0"

_MAP = "listener.security.protocol.map"
_PLAIN = "PLAINTEXT"
_SYNONYMS = (("log.dirs", "log.dir"), *(names for names in BROKER_SYNONYMS.values() if len(names) > 1))
"""Names of the same setting; the first one that is set counts."""


def use_data_dir(settings: dict[str, Setting], data_dir: str) -> None:
    """--data."""
    for key in ("log.dirs", "log.dir"):
        given = settings.get(key)
        if given is not None and given.is_typed and given.text != data_dir:
            raise ContradictionError(
                key, f"--data {data_dir} and --set {key}={given.text} contradict each other: remove one of them."
            )
    metadata = settings.get("metadata.log.dir")
    if metadata is not None and not metadata.is_typed and metadata.text != data_dir:
        raise ContradictionError(
            "metadata.log.dir",
            f"--data {data_dir} would leave the metadata log in metadata.log.dir={metadata.text} ({metadata.origin}): "
            f"add --set metadata.log.dir={data_dir}, or the folder where it is to be.",
        )
    settings.pop("log.dir", None)
    settings["log.dirs"] = Setting(data_dir, "--data")


def use_temporary_dir(settings: dict[str, Setting], folder: str) -> None:
    """--ephemeral without --data: the metadata log is temporary as well."""
    for key in ("log.dirs", "log.dir", "metadata.log.dir"):
        given = settings.pop(key, None)
        if given is not None and given.is_typed:
            raise ContradictionError(
                key,
                f"--ephemeral and --set {key}={given.text} contradict each other: remove one of them, or use --data "
                "for data that is kept.",
            )
    settings["log.dirs"] = Setting(folder, "--ephemeral")


def use_free_port(settings: dict[str, Setting]) -> None:
    """--ephemeral without --listen. Clients get this port, and not one that a file advertises."""
    given = settings.get("listeners")
    if given is not None and given.is_typed:
        return
    _check_replaceable(settings, "--ephemeral")
    advertised = settings.get("advertised.listeners")
    if advertised is not None and not advertised.is_typed:
        del settings["advertised.listeners"]
    _listen(settings, FREE_PORT, "--ephemeral")


def use_listen(settings: dict[str, Setting], listen: str) -> None:
    """--listen."""
    replaced = _check_replaceable(settings, f"--listen {listen}", unless=f"{_PLAIN}://{listen}")
    advertised = settings.get("advertised.listeners")
    if replaced is not None and advertised is not None and not advertised.is_typed:
        _check_advertised(listen, replaced, advertised)
    _listen(settings, listen, "--listen")


def check_precedence(settings: Mapping[str, Setting]) -> None:
    """Refuses a setting that has no effect because a lower layer sets a synonym that counts instead."""
    for names in _SYNONYMS:
        given = [name for name in names if name in settings]
        for name in given[1:]:
            counts, hidden = settings[given[0]], settings[name]
            if hidden.layer > counts.layer:
                raise ContradictionError(
                    name,
                    f"{hidden.shown(name)} has no effect, because {given[0]}={counts.text} ({counts.origin}) counts "
                    f"instead: set {given[0]}.",
                )


def _listen(settings: dict[str, Setting], listen: str, option: str) -> None:
    listeners = settings.get("listeners", Setting("", "")).text
    settings["listeners"] = Setting(listening_on(listen, listeners, _controller_names(settings)), option)


def _controller_names(settings: Mapping[str, Setting]) -> str:
    return settings.get("controller.listener.names", Setting(CONTROLLER_NAME, "")).text


def _check_replaceable(settings: Mapping[str, Setting], option: str, unless: str = "") -> Listener | None:
    """The plaintext listener that the option replaces, if there is one."""
    given = settings.get("listeners")
    if given is None or given.is_default:
        return None
    items = [item for item in given.items if is_for_clients(item, _controller_names(settings))]
    if not items or items == [unless]:
        return None
    if given.is_typed:
        raise ContradictionError(
            "listeners", f"{option} and --set listeners={given.text} contradict each other: remove one of them."
        )
    listeners = parse_listeners("listeners", items, _protocols(settings))
    if [(item.name, item.security_protocol) for item in listeners] != [(_PLAIN, _PLAIN)]:
        _refuse_to_open(option, given, items)
    return listeners[0]


def _refuse_to_open(option: str, given: Setting, items: list[str]) -> NoReturn:
    raise ContradictionError(
        "listeners",
        f"{option} would replace {' and '.join(items)} ({given.origin}) with a listener that is open to everyone: "
        "change listeners there, or override it with --set listeners=.",
    )


def _protocols(settings: Mapping[str, Setting]) -> dict[str, str]:
    default = BROKER_KEYS[_MAP].default
    assert isinstance(default, str)
    return parse_protocol_map(_MAP, settings.get(_MAP, Setting(default, "")).text)


def _check_advertised(listen: str, replaced: Listener, advertised: Setting) -> None:
    """Clients must not be sent to the port that the option has just replaced."""
    port = listen.rpartition(":")[2]
    for item in advertised.items:
        name, _, address = item.partition("://")
        host, _, advertised_port = address.rpartition(":")
        if name.upper() == _PLAIN and advertised_port == str(replaced.port) != port:
            raise ContradictionError(
                "advertised.listeners",
                f"--listen {listen} and advertised.listeners={advertised.text} ({advertised.origin}) contradict each "
                f"other, because clients would be sent to port {advertised_port}: add --set "
                f"advertised.listeners={_PLAIN}://{host}:{port}.",
            )
