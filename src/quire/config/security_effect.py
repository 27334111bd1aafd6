"""Settings for TLS, SASL and access control, which Quire does not have yet: none is accepted in silence.

A user who sets one on the command line or in the environment relies on it, so that is an error. A file may be that of a
Kafka node: as long as its listeners are plaintext and it has no authorizer, Kafka ignores these settings too, so Quire
starts and warns. Listeners with TLS or SASL and authorizers are refused (`unsupported`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.config.allowed import Value
from quire.config.errors import ConfigError
from quire.config.security_keys import SECURITY_KEYS

if TYPE_CHECKING:
    from quire.config.layers import Setting

NO_AUTHORIZER = "Quire does not check who may do what yet"
_OPEN = "Quire has no TLS, SASL or access control yet"

_SECURITY = (*SECURITY_KEYS, "connection.failed.authentication.delay.ms", "connections.max.reauth.ms")
_AUTHORIZERS_OWN = ("super.users", "allow.everyone.if.no.acl.found")
"""Kafka's authorizer reads these; they are not in its table of settings."""
_FOR_ONE_LISTENER = "listener.name."
_SECURITY_WORDS = (".ssl.", ".sasl.", ".principal.builder.", ".reauth.")


def why_not_supported(name: str) -> str | None:
    """The reason, if Kafka understands this name although it is not in Kafka's table of settings."""
    if name in _AUTHORIZERS_OWN:
        return NO_AUTHORIZER
    if name.startswith(_FOR_ONE_LISTENER):
        return _OPEN if any(word in name for word in _SECURITY_WORDS) else "Quire has no settings for one listener yet"
    return None


def check_security_has_effect(settings: Mapping[str, Setting], changed: Mapping[str, Value]) -> list[str]:
    """Warnings about settings from a file; ConfigError if one is from elsewhere. `changed` are not Kafka's defaults."""
    ignored: list[str] = []
    for name in _SECURITY:
        if name in settings and changed.get(name):
            if settings[name].layer > 0:
                raise ConfigError(name, f"{name} has no effect, because {_OPEN}: remove it, and see SECURITY.md.")
            ignored.append(f"{name} ({settings[name].origin})")
    if not ignored:
        return []
    verb = "has" if len(ignored) == 1 else "have"
    return [f"{', '.join(ignored)} {verb} no effect: {_OPEN}, and its listeners are open to everyone who reaches them"]
