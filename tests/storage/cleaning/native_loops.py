"""The loops of compaction as source, loaded instead of the compiled modules."""

import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType, SimpleNamespace

from quire.storage import cleaning

_PACKAGE = "quire.storage.cleaning"
NAMES = ("bytes_native", "key_table_native", "offset_map_builder_native", "filter_native")


@cache
def interpreted_modules() -> SimpleNamespace:
    """All loops; each uses the interpreted versions of the others."""
    compiled = {name: sys.modules.pop(f"{_PACKAGE}.{name}", None) for name in NAMES}
    modules: dict[str, ModuleType] = {}
    try:
        for name in NAMES:
            source = Path(cleaning.__file__).with_name(f"{name}.py")
            loader = SourceFileLoader(f"{_PACKAGE}.{name}", str(source))
            spec = spec_from_loader(loader.name, loader)
            assert spec is not None
            modules[name] = sys.modules[loader.name] = module_from_spec(spec)
            loader.exec_module(modules[name])
    finally:
        for name in NAMES:
            del sys.modules[f"{_PACKAGE}.{name}"]
            if (module := compiled[name]) is not None:
                sys.modules[f"{_PACKAGE}.{name}"] = module
    assert not modules["filter_native"].COMPILED
    return SimpleNamespace(**modules)
