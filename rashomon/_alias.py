"""Import of every package under the name ``rashomon``: ``rashomon.benchmarks.base`` is the module ``benchmarks.base``.

The finder stands before Python's own, which would load the file of such a module a second time, under its second name. It
imports the module by its first name and puts the same object under the second one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from rashomon._names import PACKAGES, check_names

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importing importlib.abc takes a fifth of the time that the command line takes to start

_PREFIX = "rashomon."


class AliasFinder(Loader):
    """Finder and loader of modules whose name is ``rashomon.`` and the name of another module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = _first_name(fullname)
        if name is None:
            return None
        if name in PACKAGES:
            check_names(name)
        spec = find_spec(name)
        if spec is None:
            return None
        is_package = spec.submodule_search_locations is not None
        return ModuleSpec(fullname, self, origin=spec.origin, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None  # the import system makes an empty one

    def exec_module(self, module: ModuleType) -> None:
        name = _first_name(module.__name__)
        assert name is not None
        # The import system takes what stands here afterwards; the empty module that it made is dropped.
        sys.modules[module.__name__] = import_module(name)


def _first_name(fullname: str) -> str | None:
    """Return the name of the module that ``fullname`` is a second name of; None if it is no second name."""
    name = fullname.removeprefix(_PREFIX)
    return name if name != fullname and name.partition(".")[0] in PACKAGES else None


def install() -> None:
    """Make the second names importable."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())
