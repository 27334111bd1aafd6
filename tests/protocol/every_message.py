"""Every message class there is, and every version of it, for tests that hold for all of them."""

from importlib import import_module
from pkgutil import iter_modules

import quire.protocol.messages
from quire.protocol.schema import Message


def message_classes() -> list[type[Message]]:
    """In the order of their modules, and in a module as written."""
    classes = []
    for module_info in iter_modules(quire.protocol.messages.__path__):
        module = import_module(f"quire.protocol.messages.{module_info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__:
                classes.append(value)
    return classes


def versions_of(message: type[Message]) -> range:
    oldest, newest = message.VERSIONS
    return range(oldest, newest + 1)


EVERY_MESSAGE = message_classes()
EVERY_VERSION = [(message, version) for message in EVERY_MESSAGE for version in versions_of(message)]
