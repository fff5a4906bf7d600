"""Telemetry, version checks and other requests that libraries make unasked, switched off for this process and its children.

``benchmarks/__init__.py`` calls :func:`switch_off`, because every process of Rashomon imports that package: commands, workers,
nodes of a cluster and bounded children.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

SETTINGS: Mapping[str, str] = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # datasets counts each use of one, also of those on disk
    "DISABLE_SAFETENSORS_CONVERSION": "1",  # transformers asks the Hub to convert a model's weights
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",  # which it looks for in all packages, and fails at metadata that it cannot read
}
"""Environment variables, where the user has not set them."""

_CONSTANTS = "huggingface_hub.constants"
_AGENTS = "huggingface_hub.utils._detect_agent"
"""The module that fetches a list of programs, which no variable switches off, before the first request of any kind."""


def switch_off() -> None:
    """Switch off the requests of all libraries, also of those that were imported before."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if constants := sys.modules.get(_CONSTANTS):
        setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)  # noqa: B010 - its type is unknown here
    if agents := sys.modules.get(_AGENTS):
        _forget_agents(agents)
    elif not any(finder is _AgentFinder for finder in sys.meta_path):
        sys.meta_path.insert(0, _AgentFinder)


def _forget_agents(module: ModuleType) -> None:
    """Let the module's list of programs be empty, as it is offline, so that it fetches none."""
    setattr(module, "_registry", {"standardEnvVars": [], "harnesses": {}})  # noqa: B010


class _AgentFinder:
    """Finder of that one module, whose list is emptied as soon as it is imported."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _AGENTS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _forget_agents(module)

            setattr(spec.loader, "exec_module", exec_module)  # noqa: B010
        return spec
