"""Caches for as many prompts as a small Mac has room for, at no cost to a process that loads no model."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

_MODULE = "mlx_backends.models.memory_and_cache_sizes"


def bound_caches(prompts: int) -> None:
    """Have the estimates of this process leave room for at most this many prompts, once their module is imported."""
    sys.meta_path.insert(0, _Finder(prompts))


class _Finder(MetaPathFinder):
    def __init__(self, prompts: int) -> None:
        self._prompts = prompts

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(self._prompts, spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, prompts: int, name: str, path: str) -> None:
        super().__init__(name, path)
        self._prompts = prompts

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.CACHED_PROMPTS = module.CACHED_IMAGES = (4, self._prompts)  # type: ignore[attr-defined]
