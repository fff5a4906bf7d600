"""The same adapter in PyTorch: the same greedy answers as in MLX and as fused, and peft's format in and out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import mlx.core as mx
import pytest

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Request
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.models.adapter_folder import read_adapter
from tests.mlx_backends.conftest import Pictures
from tests.mlx_backends.pytorch.test_torch_backend import built, compared, several
from tests.support.adapters import make_adapter
from tests.support.benchmark_requests import RequestFactory, answers
from tests.support.command import ROOT, Rashomon
from tests.support.in_torch import in_torch, needs_torch


def test_the_identity_is_that_of_mlx(tiny: Path, tmp_path: Path) -> None:
    adapter = make_adapter(tiny, tmp_path / "adapter")
    ours, theirs = describe(f"{tiny}+{adapter}"), describe(f"cuda:{tiny}+{adapter}@fp32@cpu")
    assert (theirs.adapter, theirs.weights) == (ours.adapter, ours.weights)
    assert theirs.model == f"cuda:{ours.model}"
    with pytest.raises(ModelError):
        describe(f"cuda:{tiny}+{tmp_path / 'none'}@fp32")


@needs_torch
@pytest.mark.parametrize(
    "kind", ["qwen3_vl", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("qwen3_vl-4bit", "lfm2_vl"))]
)
def test_pytorch_matches_mlx(kind: str, pictures: Pictures, tmp_path: Path) -> None:
    model = built(kind, tmp_path / "model")
    adapter = make_adapter(model, tmp_path / "adapter")
    compared(Path(f"{model}+{adapter}"), several(pictures), pictures)


@needs_torch
@pytest.mark.slow
def test_64_prompts_have_equal_answers_in_mlx_fused_and_in_pytorch(tmp_path: Path) -> None:
    where = RequestFactory(tmp_path)
    requests = [*where.cmc_bench(5), *where.clash(6), *where.mmkc(8), *where.mmkc_bench(2)][:64]
    assert len(requests) == 64
    model = built("qwen3_vl", tmp_path / "model")
    adapter = make_adapter(model, tmp_path / "adapter")
    Rashomon(tmp_path).run("models", "fuse", model, "--adapter", adapter, "--to", tmp_path / "fused")
    texts = [answered(name, requests, where) for name in (str(model), f"{model}+{adapter}", str(tmp_path / "fused"))]
    assert texts[0] != texts[1]
    assert texts[1] == texts[2]
    for name in (f"{model}+{adapter}", tmp_path / "fused"):
        theirs = in_torch(name, requests, where.path).answers
        assert {key: generation.tokens for key, generation in theirs.items()} == texts[1]


def answered(model: str, requests: Sequence[Request], where: RequestFactory) -> dict[str, tuple[int, ...]]:
    backend = load_backend(model, where.path)
    tokens = {key: generation.tokens for key, generation in answers(backend, requests).items()}
    backend.close()
    return tokens


# --- peft ------------------------------------------------------------------------------------


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qwen3_vl", "lfm2_vl", "llava", "idefics3", "demo-4bit"])
def test_peft_reads_it_and_it_comes_back_the_same(kind: str, pictures: Pictures, tmp_path: Path) -> None:
    model = built(kind, tmp_path / "model")
    adapter = make_adapter(model, tmp_path / "adapter")
    rashomon = Rashomon(tmp_path, variables={"OMP_NUM_THREADS": "1"})
    done = rashomon.run("models", "adapter", adapter, "--model", model, "--to-peft", tmp_path / "peft")
    assert sorted(path.name for path in (tmp_path / "peft").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    if find_spec("peft") is None:
        assert "peft: not checked: peft is not installed." in done.stdout
    else:
        assert "peft: 5 of 5 greedy answers are those of MLX, token for token" in done.stdout
        assert applied_by_peft(model, tmp_path / "peft") == len(read_adapter(adapter).shapes)
    rashomon.run("models", "adapter", tmp_path / "peft", "--model", model, "--to-mlx", tmp_path / "back")
    first, second = (mx.load(str(folder / "adapters.safetensors")) for folder in (adapter, tmp_path / "back"))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert set(first) == set(second)
    assert all(bool(mx.array_equal(first[name], second[name])) for name in first)
    assert read_adapter(tmp_path / "back").scale == read_adapter(adapter).scale
    with pytest.raises(ModelError):  # peft's own folder is not run as it is
        describe(f"{model}+{tmp_path / 'peft'}")


PEFT = """
import sys
from pathlib import Path
from mlx_backends.pytorch.torch_load import load
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
model, _ = load(Path(sys.argv[1]), "cpu")
tuned = PeftModel.from_pretrained(model, sys.argv[2])
stored, applied = load_file(sys.argv[2] + "/adapter_model.safetensors"), get_peft_model_state_dict(tuned)
assert set(stored) == set(applied), set(stored) ^ set(applied)
assert all(bool((stored[name] == applied[name]).all()) for name in stored)
assert {layer.scaling["default"] for layer in tuned.modules() if isinstance(getattr(layer, "scaling", 0), dict)} == {2.0}
print(len(applied))
"""


def applied_by_peft(model: Path, adapter: Path) -> int:
    """Load the adapter by peft itself, and return how many tensors it applied, each with its stored value."""
    command = [sys.executable, "-c", PEFT, str(model), str(adapter)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "changes", [{"r": 0}, {"use_dora": True}, {"peft_type": "IA3"}, {"lora_alpha": "8"}, {"rank_pattern": {"q": 2}}]
)
def test_other_peft_adapters_are_refused(tiny: Path, changes: dict[str, object], tmp_path: Path) -> None:
    folder = tmp_path / "peft"
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 4, **changes}))
    name = "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_{}.weight"
    tensors = {name.format("A"): mx.zeros((2, 64)), name.format("B"): mx.zeros((64, 2))}
    mx.save_safetensors(str(folder / "adapter_model.safetensors"), tensors)
    rashomon = Rashomon(tmp_path)
    rashomon.run("models", "adapter", folder, "--model", tiny, "--to-mlx", tmp_path / "out", code=2)
    assert not (tmp_path / "out").exists()


def test_a_pickled_peft_adapter_is_never_opened(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "peft"
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2}))
    (folder / "adapter_model.bin").write_bytes(b"\x80\x04.")
    Rashomon(tmp_path).run("models", "adapter", folder, "--model", tiny, "--to-mlx", tmp_path / "out", code=2)
