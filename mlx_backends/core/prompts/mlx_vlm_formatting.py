"""mlx-vlm's formatting of messages for a model's chat template, without importing MLX."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from benchmarks.errors import ModelError

_NO_PARENTHESES = ("minicpmv4_6",)
"""Types for which mlx-vlm 0.7.10 writes each image's placeholder in parentheses that its processor leaves in the prompt."""

_SEVERAL_IMAGES = ("llava_next",)
"""Types that mlx-vlm 0.7.10 shows one image only, and that see several with the patches of their models."""


@cache
def prompt_utils() -> ModuleType:
    """Return ``mlx_vlm.prompt_utils``, loaded from its file alone.

    The PyTorch backend runs in a process without MLX and needs the same prompts. Raises ModelError where mlx-vlm is not
    installed.
    """
    package = find_spec("mlx_vlm")  # finds the package without importing it
    if package is None or package.origin is None:
        raise ModelError("mlx-vlm is not installed, and it formats the prompts; `pip install mlx-vlm`.")
    name = "mlx_backends._prompt_utils"
    spec = spec_from_file_location(name, Path(package.origin).with_name("prompt_utils.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    for kind in _NO_PARENTHESES:
        if getattr(module.MODEL_CONFIG.get(kind), "name", "") == "IMAGE_TOKEN_WRAPPED":
            module.MODEL_CONFIG[kind] = module.MessageFormat.LIST_WITH_IMAGE
    module.SINGLE_IMAGE_ONLY_MODELS.difference_update(_SEVERAL_IMAGES)
    return module
