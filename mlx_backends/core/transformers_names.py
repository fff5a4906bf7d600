"""Names that transformers' modules define, remembered in a private file between processes.

To import transformers is to search its 3,300 source files, twice, for these names: half a second of each process. What was found
holds until the size or time of one of the files changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.errors import StoreError
from benchmarks.untrusted import private_state
from benchmarks.untrusted.safe_json import parse_json

Names = dict[frozenset[str], dict[str, set[str]]]
"""By the libraries that they need: the modules, with the names that each defines."""

FILE = "transformers-names.json"

_MODULE = "transformers.utils.import_utils"


def remember_names() -> None:
    """Let this process, when it imports transformers, take the names from an earlier process, or record them for later ones."""
    if _MODULE not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """A loader of the module that searches the files, whose function for that then remembers what it found."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if search := getattr(module, "define_import_structure", None):
            models = Path(self.path).parents[1] / "models"
            module.define_import_structure = _remembering(search, models)  # type: ignore[attr-defined]


def _remembering(search: Callable[..., Names], models: Path) -> Callable[..., Names]:
    """Return ``search`` with a memory for the folder ``models``, which holds nearly all files."""

    @cache
    def found() -> Names:
        state = _state(models)
        names = _read(state)
        if names is None:
            names = search(models)
            _write(state, names)
        return names

    def define_import_structure(module_path: str | Path, prefix: str | None = None) -> Names:
        if Path(module_path) not in (models, models / "__init__.py"):
            return search(module_path, prefix)
        start = "" if prefix is None else f"{prefix}."
        return {
            needed: {start + module: set(names) for module, names in modules.items()}
            for needed, modules in found().items()
        }

    return define_import_structure


def _state(folder: Path) -> str:
    """Return a digest of the names, sizes and times of the source files in ``folder``."""
    return hashlib.sha256(json.dumps([str(folder), *_files(folder)]).encode()).hexdigest()


def _files(folder: str | Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir():
                yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def _read(state: str) -> Names | None:
    """Return the names of an earlier process that found ``state``; None without such."""
    with suppress(StoreError, ValueError, TypeError, KeyError, AttributeError):
        content: Mapping[str, Any] = parse_json(private_state.read(FILE) or "{}")
        if content.get("state") == state:
            return {
                frozenset(needed): {module: set(names) for module, names in modules.items()}
                for needed, modules in content["names"]
            }
    return None


def _write(state: str, names: Names) -> None:
    content = [
        [sorted(needed), {module: sorted(found) for module, found in modules.items()}]
        for needed, modules in names.items()
    ]
    with suppress(StoreError):  # then the next process searches again
        private_state.write(FILE, json.dumps({"state": state, "names": content}))
