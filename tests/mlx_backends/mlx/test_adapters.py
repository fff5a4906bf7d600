"""Adapters in MLX: applied to the answers, the same in a batch, and refused where they are not of the model."""

from __future__ import annotations

import json
import pickle
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Request
from mlx_backends.core.batch_invariance import SEQUENTIAL
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.mlx.mlx_load import load
from mlx_backends.mlx.mode_choice import BATCHED_SHARED
from mlx_backends.mlx.vision.feature_folder import LIMIT
from mlx_backends.mlx.vlm_backend import VLMBackend
from mlx_backends.models.adapter_folder import adapter_name, split_adapter
from mlx_backends.sight_check import ReplaceableMedia, check_sight, sight_requests
from mlx_backends.stored_checks import StoredChecks
from tests.mlx_backends.conftest import Pictures
from tests.mlx_backends.mlx.test_batched_answers import tokens, varied
from tests.support import tiny_models
from tests.support.adapters import edit_config, linear_names, make_adapter
from tests.support.benchmark_requests import answers
from tests.support.demo import FOUR_BIT
from tests.support.model_matrix import shrunk
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_lm, build_tiny_vlm

FAMILIES = (
    "qwen3_vl",
    "lfm2_vl",
    "qwen2_5_vl",
    "internvl_chat",
    "llava",
    "glm4v",
    "mistral3",
    "qwen3_vl_moe",
    "qwen3_5",
    "idefics3",
    "qwen2_vl",
    "smolvlm",
    *("aya_vision", "gemma4_unified", "kimi_vl", "llava_next", "qwen3_5_moe"),
    *("glm4v_moe", "hunyuan_vl", "llama4", "minicpmo", "minicpmv4_7", "paddleocr_vl", "zaya1_vl"),
)


def loaded(model: Path, adapter: Path | None, media: Any) -> VLMBackend:
    backend = load_backend(str(model) if adapter is None else f"{model}+{adapter}", media)
    assert isinstance(backend, VLMBackend)
    backend.width = 4
    backend._model.set_dtype(mx.float32)
    return backend


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.qwen3_vl(tmp_path_factory.mktemp("base") / "model")


@pytest.fixture(scope="module")
def tuned(base: Path) -> Path:
    """An adapter of the language model of ``base``."""
    return make_adapter(base, base.parent / "tuned")


@pytest.fixture
def copied(tuned: Path, tmp_path: Path) -> Path:
    """A copy of the adapter, to damage."""
    return Path(shutil.copytree(tuned, tmp_path / "copied"))


# --- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family", [name if name == "qwen3_vl" else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES]
)
def test_batched_answers_with_an_adapter_equal_sequential_ones(family: str, pictures: Pictures, tmp_path: Path) -> None:
    with shrunk(family):
        model = getattr(tiny_models, family)(tmp_path / "model")
        adapter = make_adapter(model, tmp_path / "adapter")
        requests = varied(pictures, 2)
        plain = loaded(model, None, pictures.path)
        without = tokens(answers(plain, requests))
        plain.close()
        backend = loaded(model, adapter, pictures.path)
        expected = tokens(answers(backend, requests))
        assert expected != without, "the adapter changes answers"
        choice = backend.choose_mode(requests)
        assert choice is not None
        assert choice.way == BATCHED_SHARED
        assert tokens(answers(backend, requests)) == expected
        backend.close()


@pytest.mark.slow
def test_an_adapter_changes_the_answers_of_a_model_that_is_not_batched(pictures: Pictures, tmp_path: Path) -> None:
    model = tiny_models.mllama(tmp_path / "model")
    adapter = make_adapter(model, tmp_path / "adapter")
    requests = [
        request for request in varied(pictures, 2) if not request.id.startswith(("0-2", "1-2"))
    ]  # one image each
    plain, backend = loaded(model, None, pictures.path), loaded(model, adapter, pictures.path)
    expected = tokens(answers(backend, requests))
    assert expected != tokens(answers(plain, requests))
    plain.close()
    choice = backend.choose_mode(requests)
    assert choice is not None
    assert choice.way == SEQUENTIAL
    assert tokens(answers(backend, requests)) == expected
    backend.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["4bit", "dora"])
def test_answers_equal_those_of_mlx_vlm(kind: str, pictures: Pictures, tmp_path: Path) -> None:
    import mlx_vlm

    model = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=kind == "4bit")
    adapter = make_adapter(model, tmp_path / "adapter", dora=kind == "dora")
    requests = varied(pictures, 2)
    ours = load_backend(f"{model}+{adapter}", pictures.path)
    mine = tokens(answers(ours, requests))
    reference, _ = mlx_vlm.load(str(model), adapter_path=str(adapter))
    assert isinstance(ours, VLMBackend)
    ours._model.update(reference.parameters())
    assert tokens(answers(ours, requests)) == mine
    ours.close()


@pytest.mark.slow
def test_an_adapter_is_used_with_another_quantisation_of_its_base(pictures: Pictures, tmp_path: Path) -> None:
    from mlx_vlm.convert import convert
    from mlx_vlm.trainer.common.model import prepare_model_for_training
    from mlx_vlm.trainer.peft import save_adapter

    bases: dict[int | None, Path] = {None: build_tiny_vlm(tmp_path / "base", TEXTS, quantise=False)}
    for bits in (4, 8):
        bases[bits] = tmp_path / f"base-{bits}bit"
        convert(str(bases[None]), str(bases[bits]), quantize=True, q_bits=bits, q_group_size=64)
    adapters: dict[int | None, Path] = {}
    for base in (None, 4):
        model, _ = load(bases[base])
        prepare_model_for_training(model, verbose=False)
        adapters[base] = tmp_path / f"adapter-{base}"
        save_adapter(model, adapters[base] / "adapters.safetensors")
    requests = varied(pictures, 2)

    def answer(base: int | None, adapter: int | None) -> Any:
        backend = load_backend(f"{bases[base]}+{adapters[adapter]}", pictures.path)
        result = tokens(answers(backend, requests))
        backend.close()
        return result

    assert answer(None, 4) == answer(4, 4), "an unquantised base is quantised as it was in the training"
    with pytest.raises(ModelError):
        answer(8, 4)
    assert len({str(answer(quantised, None)) for quantised in bases}) == 3, "each quantisation has answers of its own"


def test_the_identity_tells_adapters_apart(base: Path, tuned: Path, tmp_path: Path) -> None:
    plain, adapted = describe(str(base)), describe(f"{base}+{tuned}")
    other = describe(f"{base}+{shutil.copytree(edit_config(make_copy(tuned, tmp_path), scale=1.0), tmp_path / 'b')}")
    assert (plain.adapter, plain.model) == (None, "model")
    assert adapted.model == "model+tuned"
    assert adapted.weights == plain.weights
    assert len({plain.adapter, adapted.adapter, other.adapter}) == 3


def make_copy(folder: Path, parent: Path) -> Path:
    return Path(shutil.copytree(folder, parent / "copy"))


@pytest.mark.slow
def test_a_model_whose_adapter_ignores_images_fails_the_sight_check(
    base: Path, pictures: Pictures, tmp_path: Path
) -> None:
    """The check sees the adapter: one that silences the language model's attention makes every answer the same."""
    values = [name for name in linear_names(base, "language_model") if name.endswith("v_proj")]
    blind = make_adapter(base, tmp_path / "blind", targets=values, rank=64)
    cancel(base, blind)
    requests = varied(pictures, 1)[:3]
    assert not sight_problem(str(base), requests, pictures)
    assert sight_problem(f"{base}+{blind}", requests, pictures)


def load_tensors(adapter: Path) -> dict[str, Any]:
    tensors: Any = mx.load(str(adapter / "adapters.safetensors"))
    return dict(tensors)


def cancel(model: Path, adapter: Path) -> None:
    """Make every adapted layer compute zero: the low-rank product becomes minus its weights."""
    weights: Any = mx.load(str(model / "model.safetensors"))
    tensors, stored = {}, load_tensors(adapter)
    scale = json.loads((adapter / "adapter_config.json").read_text())["lora_parameters"]["scale"]
    for name, value in stored.items():
        if name.endswith("lora_a"):
            layer = name.removesuffix(".lora_a").replace("language_model.model.", "model.language_model.")
            tensors[name] = mx.eye(value.shape[0], value.shape[1])
            tensors[name.replace("lora_a", "lora_b")] = -weights[f"{layer}.weight"].T.astype(mx.float32) / scale
    mx.save_safetensors(str(adapter / "adapters.safetensors"), tensors)


def sight_problem(model: str, requests: list[Request], pictures: Pictures) -> str:
    media = ReplaceableMedia(pictures.path)
    backend = load_backend(model, media)
    backend.use_sequential_mode()
    check = check_sight(backend, media, sight_requests(requests))
    backend.close()
    assert check is not None
    return check.problem


# --- features on disk ------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LIMIT, "1")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache"


@pytest.mark.slow
def test_an_adapter_of_the_language_model_reads_the_features_of_the_base(
    base: Path, tuned: Path, pictures: Pictures, tmp_path: Path, cache: Path
) -> None:
    requests = varied(pictures, 2)
    tower = make_adapter(base, tmp_path / "tower", targets=linear_names(base, "vision_tower"))
    encoded = {}
    for name, adapter in (("base", None), ("language", tuned), ("tower", tower)):
        backend = loaded(base, adapter, pictures.path)
        expected = tokens(answers(backend, requests))
        backend.choose_mode(requests)
        assert tokens(answers(backend, requests)) == expected
        assert backend.reuse is not None
        encoded[name] = backend.reuse.encoded
        backend.close()
    files = len(list(cache.rglob("*.features")))
    assert encoded["language"] == 0
    assert files % 2 == 0, "the tower's adapter has features of its own"
    again = loaded(base, tower, pictures.path)
    again.choose_mode(requests)
    answers(again, requests)
    assert again.reuse is not None
    assert again.reuse.encoded == 0
    assert len(list(cache.rglob("*.features"))) == files
    again.close()


# --- refusals --------------------------------------------------------------------------------


def refused(name: str) -> str:
    with pytest.raises(ModelError) as error:
        describe(name)
    assert "\n" not in str(error.value)
    return str(error.value)


def refused_at_load(name: str, pictures: Pictures) -> None:
    with pytest.raises(ModelError) as error:
        load_backend(name, pictures.path)
    assert "another base model" in str(error.value)


def test_a_missing_folder_or_file_is_refused(base: Path, copied: Path) -> None:
    refused(f"{base}+{copied.parent / 'none'}")
    for name in ("adapters.safetensors", "adapter_config.json"):
        (copied / name).rename(copied / "elsewhere")
        refused(f"{base}+{copied}")
        (copied / "elsewhere").rename(copied / name)
    describe(f"{base}+{copied}")


def test_a_truncated_file_is_refused(base: Path, copied: Path) -> None:
    for name in ("adapters.safetensors", "adapter_config.json"):
        whole = (copied / name).read_bytes()
        for size in (0, 5, len(whole) // 2, len(whole) - 1):
            (copied / name).write_bytes(whole[:size])
            refused(f"{base}+{copied}")
        (copied / name).write_bytes(whole)
    describe(f"{base}+{copied}")


class Trap:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (eval, ("(_ for _ in ()).throw(AssertionError('unpickled'))",))


@pytest.mark.parametrize("name", ["adapters.bin", "adapter_model.bin", "adapters.pt", "adapters.safetensors"])
def test_a_pickle_is_refused_and_never_opened(base: Path, copied: Path, name: str) -> None:
    (copied / "adapters.safetensors").unlink()
    (copied / name).write_bytes(pickle.dumps(Trap()))
    refused(f"{base}+{copied}")


@pytest.mark.parametrize(
    "changes",
    [
        {"rank": 0},
        {"rank": -1},
        {"rank": 8},
        {"rank": "4"},
        {"rank": 10**9},
        {"scale": None},
        {"dropout": 1.5},
        {"keys": "q_proj"},
        {"keys": [1]},
    ],
)
def test_wrong_settings_are_refused(base: Path, copied: Path, changes: dict[str, Any]) -> None:
    refused(f"{base}+{edit_config(copied, **changes)}")


def test_settings_that_are_not_an_object_are_refused(base: Path, copied: Path) -> None:
    for text in ("[]", "null", '{"lora_parameters": 3}', '{"fine_tune_type": "full"}', '{"peft_type": "LORA"}'):
        (copied / "adapter_config.json").write_text(text)
        refused(f"{base}+{copied}")


def test_an_adapter_of_another_model_is_refused_by_what_its_training_recorded(base: Path, copied: Path) -> None:
    weights = describe(str(base)).weights
    for record, accepted in (
        ({"base model": "org/other", "base weights": "0" * 64}, False),
        ({"base model": "org/other", "base weights": weights}, True),
        ({"base model": "org/model-4bit", "base weights": "0" * 64}, True),  # another quantisation of it
        ({"unrelated": 1}, True),
    ):
        (copied / "training.json").write_text(json.dumps(record))
        if accepted:
            describe(f"{base}+{copied}")
        else:
            refused(f"{base}+{copied}")


@pytest.mark.parametrize("other", ["lfm2_vl", "llava"])
def test_an_adapter_that_does_not_fit_the_layers_is_refused(
    other: str, tuned: Path, pictures: Pictures, tmp_path: Path
) -> None:
    refused_at_load(f"{getattr(tiny_models, other)(tmp_path / 'other')}+{tuned}", pictures)


def test_an_adapter_of_another_size_is_refused_before_anything_is_loaded(tuned: Path) -> None:
    assert "another base model" in refused(f"{FOUR_BIT}+{tuned}")


def test_tensors_of_another_shape_are_refused(base: Path, copied: Path, pictures: Pictures) -> None:
    tensors = load_tensors(copied)
    name = next(name for name in tensors if name.endswith("q_proj.lora_b"))
    mx.save_safetensors(str(copied / "adapters.safetensors"), {**tensors, name: tensors[name][:, :-1]})
    refused_at_load(f"{base}+{copied}", pictures)


def test_tensors_other_than_the_settings_name_are_refused(base: Path, copied: Path, pictures: Pictures) -> None:
    keys = json.loads((copied / "adapter_config.json").read_text())["lora_parameters"]["keys"]
    for names in (keys[:-1], [*keys, "language_model.lm_head"], ["__class__"], ["language_model.model"]):
        edit_config(copied, keys=names)
        with pytest.raises(ModelError):
            load_backend(f"{base}+{copied}", pictures.path)


def test_a_diverged_adapter_is_refused(base: Path, copied: Path, pictures: Pictures) -> None:
    tensors = load_tensors(copied)
    name = next(iter(tensors))
    mx.save_safetensors(str(copied / "adapters.safetensors"), {**tensors, name: tensors[name] * float("nan")})
    with pytest.raises(ModelError):
        load_backend(f"{base}+{copied}", pictures.path)


def test_an_adapter_for_a_text_only_model_is_refused(tuned: Path, tmp_path: Path) -> None:
    refused(f"{build_tiny_lm(tmp_path / 'text', TEXTS, quantise=False)}+{tuned}")


# --- stored checks ---------------------------------------------------------------------------


def test_checks_of_the_base_are_not_those_of_the_adapter(base: Path, tuned: Path, cache: Path) -> None:
    plain, adapted = (StoredChecks(asdict(describe(name))) for name in (str(base), f"{base}+{tuned}"))
    saved = plain.save("sight", {"width": 4}, {})
    assert saved is not None
    assert plain.find("sight", {"width": 4}) is not None
    assert adapted.find("sight", {"width": 4}) is None
    assert adapted.save("sight", {"width": 4}, {}) is not None
    assert plain.find("sight", {"width": 4}) is not None


# --- names -----------------------------------------------------------------------------------


def test_names(tmp_path: Path) -> None:
    plus = tmp_path / "a+b"
    plus.mkdir()
    assert split_adapter(str(plus)) == (str(plus), None)
    assert split_adapter(f"{plus}+/x/y") == (str(plus), "/x/y")
    assert split_adapter("org/model+runs/x") == ("org/model", "runs/x")
    assert split_adapter("org/model") == ("org/model", None)
    assert split_adapter("openai:a+b") == ("openai:a+b", None)
    assert adapter_name("/x/clash") == "clash"
    assert adapter_name("/x/clash/best") == "clash.best"
    assert adapter_name("/x/clash/adapter") == "clash"
