"""The native loops as one module: as installed, or loaded from source instead of the compiled modules."""

from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

from quire import protocol
from quire.protocol.records import arrow_native, encode_native, records_native


def installed_module() -> ModuleType:
    return _joined(arrow_native, encode_native, records_native)


@cache
def interpreted_module() -> ModuleType:
    names = ("arrow_native", "encode_native", "records_native")
    return _joined(*(interpreted(f"records/{name}.py") for name in names))


def interpreted(path: str) -> ModuleType:
    """A native module of `quire.protocol` by its source."""
    source = Path(protocol.__file__).parent / path
    loader = SourceFileLoader(f"{source.stem}_interpreted", str(source))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    assert not module.COMPILED
    return module


def _joined(*modules: ModuleType) -> ModuleType:
    joined = ModuleType("native")
    for module in modules:
        vars(joined).update(vars(module))
    return joined
