"""mlx-vlm's way of putting messages to a model's chat template, without importing MLX."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from benchmarks.errors import ModelError


@cache
def prompt_utils() -> ModuleType:
    """``mlx_vlm.prompt_utils``, from its file alone: PyTorch is asked with the very same prompts, in a process without MLX.

    Raises ModelError where mlx-vlm is not installed.
    """
    package = find_spec("mlx_vlm")  # which finds a package without importing it
    if package is None or package.origin is None:
        raise ModelError("mlx-vlm is not installed, and prompts are put as it puts them; `pip install mlx-vlm`.")
    name = "mlx_backends._prompt_utils"
    spec = spec_from_file_location(name, Path(package.origin).with_name("prompt_utils.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
