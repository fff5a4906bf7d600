"""Modules that load no heavy library on import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"mlx", "mlx_vlm", "transformers", "torch", "PIL", "numpy", "datasets", "tokenizers", "huggingface_hub"}
HEAVY |= {"mlx_lm", "llguidance"}
SHOW = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"


def loaded(code: str, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{SHOW}", *arguments], capture_output=True, text=True, check=True
    )
    modules: list[str] = json.loads(done.stdout)
    return set(modules)


@pytest.mark.parametrize(
    "module",
    [
        "base",
        "engine_registry",
        "policy_engine",
        "models.model_discovery",
        "models.memory_and_cache_sizes",
        "models.weight_files",
        "core.prompts.chat_prompt",
        "mlx.vlm_backend",
        "mlx.lm_backend",
        "mlx.lm_batch",
        "core.constrained_decoding",
        "pytorch.torch_names_and_devices",
        "core.engine_probe",
        "pytorch.torch_backend",
        "pytorch.torch_load",
        "pytorch.torch_weights",
        "core.detokenize",
    ],
)
def test_importing_a_module_loads_nothing_heavy(module: str) -> None:
    assert not loaded(f"import mlx_backends.{module}") & HEAVY


def test_describing_models_loads_nothing_heavy(tiny: Path) -> None:
    code = (
        "import sys\nfrom mlx_backends.engine_registry import describe\n"
        "from mlx_backends.models.memory_and_cache_sizes import memory_fit\n"
        "describe(sys.argv[1]), describe('policy:random'), memory_fit(10**9)"
    )
    assert not loaded(code, str(tiny)) & HEAVY
