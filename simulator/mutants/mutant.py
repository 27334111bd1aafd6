"""A mutant: one small change to the source of a product function, for the length of one run.

The change is text: `old` occurs exactly once in the function, and becomes `new`. The function is compiled again in its
module, so nothing on disk changes. If the product's code changes so that `old` is gone, `apply` says so, and the mutant
must be written again.
"""

import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    name: str
    """What is wrong, in a few words."""
    where: str
    """module:function or module:Class.function"""
    old: str
    new: str
    quorum: bool = False
    """Whether quorums of controllers show it, which are faster to simulate than clusters with clients."""


class MutantError(Exception):
    """The code that a mutant changes is not there."""


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    owners, name, before = _find(mutant)
    changed = _compiled(mutant, name, before)
    for owner in owners:
        setattr(owner, name, changed)
    try:
        yield
    finally:
        for owner in owners:
            setattr(owner, name, before)


def _find(mutant: Mutant) -> tuple[Sequence[Any], str, Any]:
    """The class, or the modules that have imported the function; its name; and the function or property itself."""
    module_name, _, path = mutant.where.partition(":")
    module = import_module(module_name)
    *classes, name = path.split(".")
    if classes:
        owner = getattr(module, classes[0])
        if name not in vars(owner):
            raise MutantError(f"{mutant.where} no longer exists")
        return [owner], name, vars(owner)[name]
    if not hasattr(module, name):
        raise MutantError(f"{mutant.where} no longer exists")
    function = getattr(module, name)
    return [module, *_importers(function, name, module)], name, function


def _importers(function: Any, name: str, module: Any) -> list[Any]:
    loaded = [each for key, each in sorted(sys.modules.items()) if key.startswith("quire") and each is not None]
    return [each for each in loaded if each is not module and vars(each).get(name) is function]


def _compiled(mutant: Mutant, name: str, before: Any) -> Any:
    function: Any = before.fget if isinstance(before, property) else getattr(before, "__func__", before)
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(mutant.old) != 1:
        raise MutantError(f"{mutant.where} has {source.count(mutant.old)} times the code that {mutant.name!r} changes")
    names: dict[str, Any] = {}
    code = compile(source.replace(mutant.old, mutant.new), f"<mutant {mutant.name}>", "exec")
    exec(code, function.__globals__, names)
    return names[name]
