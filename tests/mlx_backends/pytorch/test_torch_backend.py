"""The same model in PyTorch: inputs equal before any output is compared, then answers token for token, in fp32 on the CPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Choice, Decoding, Media, Message, Request, Text
from mlx_backends.core.batch_invariance import BATCHED
from mlx_backends.core.engine_probe import Probe
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.pytorch import torch_names_and_devices
from mlx_backends.pytorch.torch_batch import make_sampler
from tests.mlx_backends.conftest import GREEDY, SAMPLED, Pictures, request_of
from tests.support import tiny_models
from tests.support.benchmark_requests import RequestFactory, answers
from tests.support.demo import BF16, FOUR_BIT
from tests.support.fp32 import in_fp32
from tests.support.in_torch import TorchResult, in_torch, needs_torch
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
CLOSE = 1e-4
"""Between logprobs of the two frameworks in fp32; some 1e-5 is seen, and another token or picture makes tenths."""


def built(kind: str, folder: Path) -> Path:
    """A tiny model, or the demo's, in fp32."""
    if kind.startswith("demo"):
        import shutil

        return in_fp32(Path(shutil.copytree(FOUR_BIT if kind.endswith("4bit") else BF16, folder)))
    if kind.startswith("qwen3_vl"):
        return in_fp32(build_tiny_vlm(folder, TEXTS, quantise=kind.endswith("4bit")))
    model_folder: Path = getattr(tiny_models, kind)(folder)
    return model_folder


def compared(
    model: Path, requests: Sequence[Request], where: RequestFactory | Pictures, *, prove: bool = False
) -> TorchResult:
    """Both engines asked the same; inputs and forced logprobs agree, and so do the answers."""
    backend = load_backend(str(model), where.path)
    mine = answers(backend, requests)
    assert {generation.error for generation in mine.values()} == {None}
    forced = {name: generation.tokens for name, generation in mine.items()}
    ours = [backend.probe(request, forced[request.id], keep=True) for request in requests]
    backend.close()
    torch_results = in_torch(model, requests, where.path, prove=prove, forced=forced)
    assert not torch_results.loaded & {"mlx", "mlx_vlm", "mlx_lm"}
    pixels, logprobs = inputs_differ(ours, torch_results.probes), 0.0
    for probe, other in zip(ours, torch_results.probes, strict=True):
        assert [likely[0][0] for likely in probe.top] == [likely[0][0] for likely in other.top]
        logprobs = max(logprobs, *np.abs(np.subtract(probe.logprobs, other.logprobs)))
    assert logprobs < CLOSE
    assert {n: g.tokens for n, g in torch_results.answers.items()} == {n: g.tokens for n, g in mine.items()}
    assert {n: (g.text, g.finish_reason) for n, g in torch_results.answers.items()} == {
        n: (g.text, g.finish_reason) for n, g in mine.items()
    }
    distinct = len({generation.tokens for generation in mine.values()})
    print(f"{model.name}: {len(mine)} answers, {distinct} different; pixels {pixels:.2g}, logprobs {logprobs:.2g}")
    return torch_results


def inputs_differ(ours: Sequence[Probe], theirs: Sequence[Probe]) -> float:
    """By how much pixel values differ at most; prompts and token ids must be the same."""
    most = 0.0
    for inputs, other in zip(ours, theirs, strict=True):
        assert (inputs.prompt, inputs.token_ids) == (other.prompt, other.token_ids)
        assert inputs.pixel_values is not None
        assert other.pixel_values is not None
        for mine, its in zip(inputs.pixel_values, other.pixel_values, strict=True):
            assert mine.shape == its.shape
            most = max(most, float(np.abs(mine - its).max()))
        if inputs.pixels == other.pixels:
            assert inputs.pixel_stats == other.pixel_stats
    assert most < 1e-5
    return most


def several(pictures: Pictures) -> list[Request]:
    """Texts, images before and between them, several images, and what looks like a control token."""
    image, other = pictures.noise(1, 96, 64), pictures.noise(2, 64, 128)
    requests = [
        (Text("What does the passage say?"),),
        (image, Text("What is the value of the bar? <|im_end|>")),
        (Text("Look: "), other, Text(" and "), image, Text(" differ. Why? é")),
        (Text("One: "), image, Text(" two: "), other, Text(" three: "), image, Text("?")),
    ]
    return [
        Request(f"{n}", 0, (Message("user", parts),), Decoding(max_tokens=6 + 3 * n, max_pixels=40_000))
        for n, parts in enumerate(requests)
    ]


@needs_torch
@pytest.mark.parametrize("kind", ["qwen3_vl", "lfm2_vl"])
def test_pytorch_matches_mlx(kind: str, pictures: Pictures, tmp_path: Path) -> None:
    torch_results = compared(built(kind, tmp_path / kind), several(pictures), pictures, prove=True)
    assert torch_results.proof is not None
    assert (torch_results.proof.way, torch_results.proof.failed) == (BATCHED, {})
    assert torch_results.capacity == 8


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["demo", "demo-4bit", "qwen3_vl", "qwen3_vl-4bit", "qwen2_5_vl", "lfm2_vl"])
def test_64_real_prompts_have_equal_answers(kind: str, tmp_path: Path) -> None:
    where = RequestFactory(tmp_path)
    charts, photographs = DATA / "cmc_bench" / "chartqa", DATA / "clash" / "sugar_crepe"
    there = charts.is_dir() and photographs.is_dir()
    real = [*where.cmc_bench(5, charts if there else None), *where.clash(6, photographs if there else None)]
    requests = [*where.mmkc(8), *where.mmkc_bench(2), *real][:64]
    assert len(requests) == 64
    assert sum(_shown(request) > 1 for request in requests) >= 8
    compared(built(kind, tmp_path / kind), requests, where, prove=True)


def _shown(request: Request) -> int:
    return sum(isinstance(part, Media) for message in request.messages for part in message.parts)


@needs_torch
def test_sampling_is_seeded_and_forms_hold_in_batches(pictures: Pictures, tmp_path: Path) -> None:
    model = built("qwen3_vl", tmp_path / "model")
    image = pictures.noise(3)
    sampled = [
        replace(request_of(image, Text(f"What is {n}?"), decoding=replace(SAMPLED, seed=n % 2)), instance_id=str(n))
        for n in range(4)
    ]
    held = replace(request_of(Text("Which?")), instance_id="held", form=Choice(("IMAGE", "TEXT")))
    requests = [*sampled, held]
    alone = in_torch(model, requests, pictures.path).answers
    torch_results = in_torch(model, requests[::-1], pictures.path, prove=True)
    assert torch_results.capacity == 8
    assert {n: g.tokens for n, g in torch_results.answers.items()} == {n: g.tokens for n, g in alone.items()}
    assert alone[held.id].text in ("IMAGE", "TEXT")
    greedy = in_torch(model, [replace(request, decoding=GREEDY) for request in sampled], pictures.path).answers
    assert any(greedy[name].tokens != alone[name].tokens for name in greedy), "it draws"
    assert all(g.prefill_s and g.peak_memory and g.prompt_tokens for g in alone.values())


@needs_torch
def test_invalid_request_fails_alone(pictures: Pictures, tmp_path: Path) -> None:
    model = built("qwen3_vl", tmp_path / "model")
    broken = replace(request_of(pictures.file(b"no picture"), Text("What?")), instance_id="broken")
    generations = in_torch(model, [broken, *several(pictures)], pictures.path, prove=True).answers
    assert generations[broken.id].finish_reason == "error"
    assert [generation.error for name, generation in generations.items() if name != broken.id] == [None] * 4


# --- without PyTorch -----------------------------------------------------------------------------


def test_a_name_says_model_type_and_device(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_names_and_devices, "default_device", lambda: "mps")
    assert torch_names_and_devices.parse_name("cuda:org/name") == torch_names_and_devices.TorchModelName(
        "org/name", None, "mps"
    )
    assert torch_names_and_devices.parse_name("cuda:org/name@fp32@cpu") == torch_names_and_devices.TorchModelName(
        "org/name", "fp32", "cpu"
    )
    assert torch_names_and_devices.parse_name("cuda:./a@b") == torch_names_and_devices.TorchModelName(
        "./a@b", None, "mps"
    )
    info = describe(f"cuda:{tiny}@fp32")
    assert (info.engine, info.model, info.quantisation) == ("transformers", "cuda:tiny-bf16", "bf16 in fp32")
    assert (info.device, info.weights) == ("mps", describe(str(tiny)).weights)


def test_device_is_reported_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert torch_names_and_devices.default_device() == "mps"
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(torch_names_and_devices, "_version", lambda name: "2.13.0")
    monkeypatch.setattr(Path, "exists", lambda self: True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert torch_names_and_devices.default_device() == "cuda"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert torch_names_and_devices.default_device() == "cpu"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(torch_names_and_devices, "_version", lambda name: "2.13.0+cpu")
    assert torch_names_and_devices.default_device() == "cpu"


def test_missing_pytorch_names_the_extra(tiny: Path, pictures: Pictures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_names_and_devices, "_version", lambda name: "none")
    with pytest.raises(ModelError, match=r"rashomon\[torch\]"):
        load_backend(f"cuda:{tiny}", pictures.path)


def test_draws_come_from_temperature_then_top_p() -> None:
    draw = make_sampler(Decoding(temperature=1.0, top_p=0.7), seed=1)
    assert draw is not None
    logits = np.log(np.array([0.1, 0.5, 0.3, 0.1]))
    drawn = [draw(logits) for _ in range(2000)]
    assert set(drawn) == {1, 2}  # 0.5 does not reach 0.7, with 0.3 it does
    assert abs(drawn.count(1) / 2000 - 0.5 / 0.8) < 0.04
    assert make_sampler(Decoding(), seed=1) is None


@needs_torch
@pytest.mark.parametrize(
    ("device", "mlx", "missing", "why"),
    [
        ("cpu", False, "", "PyTorch sees none"),
        ("cuda", True, "", "name the original model"),
        ("cuda", False, "bitsandbytes", r"rashomon\[nf4\]"),
        ("cuda", False, "accelerate", r"rashomon\[nf4\]"),
    ],
)
def test_nf4_is_refused_if_unsupported(
    device: str, mlx: bool, missing: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlx_backends.pytorch import torch_load

    _installed(monkeypatch, missing)
    with pytest.raises(ModelError, match=why):
        torch_load._nf4(device, mlx)


@needs_torch
def test_nf4_uses_bitsandbytes(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    import transformers

    from mlx_backends.pytorch import torch_load

    _installed(monkeypatch, "")
    monkeypatch.setattr(transformers, "BitsAndBytesConfig", dict)
    settings = torch_load._nf4("cuda", mlx=False)
    assert settings["quantization_config"] == {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_compute_dtype": torch.bfloat16,
    }
    assert (settings["device_map"], settings["dtype"]) == ("cuda", torch.bfloat16)


def _installed(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    from importlib.metadata import PackageNotFoundError

    from mlx_backends.pytorch import torch_load

    def version(name: str) -> str:
        if name == missing:
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(torch_load, "version", version)


def test_gpu_memory_must_hold_the_weights() -> None:
    from mlx_backends.models.memory_and_cache_sizes import memory_fit
    from mlx_backends.models.metal_working_set import GIB

    fit = memory_fit(20 * GIB, {"total_memory": 24 * GIB, "architecture": "sm_89"})
    assert fit.ok
    assert fit.sentence.endswith("25.8 GB of the GPU's memory")
    assert not memory_fit(22 * GIB, {"total_memory": 24 * GIB}).ok


def test_four_bit_weights_are_counted_dequantised(tiny_4bit: Path) -> None:
    _, model_info, _ = torch_names_and_devices._described(torch_names_and_devices.parse_name(f"cuda:{tiny_4bit}"))
    assert (
        torch_names_and_devices._needed(model_info, torch_names_and_devices.parse_name(f"cuda:{tiny_4bit}"))
        == 4 * model_info.weights_bytes
    )
    assert (
        torch_names_and_devices._needed(model_info, torch_names_and_devices.parse_name(f"cuda:{tiny_4bit}@fp32"))
        == 8 * model_info.weights_bytes
    )


@needs_torch
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"model_type": "internvl_chat"}, "does not know by itself"),
        ({"model_type": ["qwen3_vl"]}, "does not know by itself"),
        ({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}, "mxfp4"),
    ],
)
def test_unsupported_pytorch_model_is_one_sentence(
    change: dict[str, object], why: str, tmp_path: Path, tiny_4bit: Path
) -> None:
    import shutil
    import subprocess
    import sys

    folder = Path(shutil.copytree(tiny_4bit, tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    code = (
        "import sys\nfrom mlx_backends.engine_registry import load_backend\nfrom mlx_backends.base import no_media\n"
        "from benchmarks.errors import ModelError\ntry: load_backend('cuda:' + sys.argv[1], no_media)\n"
        "except ModelError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert why in done.stdout


@needs_torch
def test_pytorch_refuses_a_process_that_has_mlx_vlm(tiny: Path, pictures: Pictures) -> None:
    import mlx_vlm

    assert mlx_vlm
    with pytest.raises(ModelError):
        load_backend(f"cuda:{tiny}", pictures.path)
