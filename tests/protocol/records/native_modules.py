"""The source of the per-record loops, loaded past the compiled module that would otherwise be found first."""

from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

from quire.protocol import records


@cache
def interpreted_module() -> ModuleType:
    source = Path(records.__file__).with_name("records_native.py")
    loader = SourceFileLoader("records_native_interpreted", str(source))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    assert not module.COMPILED
    return module
