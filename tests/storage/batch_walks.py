"""The walk over batches, compiled (if it is) and interpreted from the same source."""

from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import quire.storage
from quire.storage.scanning import batch_walk_native
from quire.storage.scanning.batch_walk_native import BatchWalk

MAX_OFFSET = (1 << 63) - 1


@cache
def interpreted_module(name: str = "scanning/batch_walk_native") -> ModuleType:
    source = Path(quire.storage.__file__).parent / f"{name}.py"
    loader = SourceFileLoader(f"{source.stem}_interpreted", str(source))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    assert not module.COMPILED
    return module


def interpreted() -> type[BatchWalk]:
    walk: type[BatchWalk] = interpreted_module().BatchWalk
    return walk


def ways() -> list[type[BatchWalk]]:
    return [BatchWalk, interpreted()] if batch_walk_native.COMPILED else [BatchWalk]


def new_walk(
    base_offset: int = 0,
    *,
    way: type[BatchWalk] = BatchWalk,
    index_interval: int = 200,
    next_offset: int | None = None,
    end_limit: int = MAX_OFFSET,
    gaps_before: int = 0,
    leader_epoch: int = 0,
) -> BatchWalk:
    return way(
        base_offset,
        index_interval,
        next_offset=base_offset if next_offset is None else next_offset,
        end_limit=end_limit,
        gaps_before=gaps_before,
        leader_epoch=leader_epoch,
    )
